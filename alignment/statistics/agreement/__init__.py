"""Agreement statistics: human labels × verdicts, two raters, many raters."""

from alignment.statistics.agreement.confusion import Confusion
from alignment.statistics.agreement.many_raters import (
    fleiss_kappa,
    gwet_ac1_raters,
    krippendorff_alpha,
    leave_one_rater_out,
    percent_agreement,
)
from alignment.statistics.agreement.two_raters import (
    GwetAC1,
    Kappa,
    brennan_prediger,
    cohen_kappa,
    gwet_ac1,
    scott_pi,
)

__all__ = [
    "Confusion",
    "GwetAC1",
    "Kappa",
    "brennan_prediger",
    "cohen_kappa",
    "fleiss_kappa",
    "gwet_ac1",
    "gwet_ac1_raters",
    "krippendorff_alpha",
    "leave_one_rater_out",
    "percent_agreement",
    "scott_pi",
]
