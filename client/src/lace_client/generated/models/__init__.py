"""Contains all the data models used in inputs/outputs"""

from .blank_enum import BlankEnum
from .candidate_test_output import CandidateTestOutput
from .chat_input import ChatInput
from .chat_input_metadata import ChatInputMetadata
from .chats_input import ChatsInput
from .chats_output import ChatsOutput
from .chats_output_ignored import ChatsOutputIgnored
from .chats_output_redactions import ChatsOutputRedactions
from .chats_send_response_400 import ChatsSendResponse400
from .code_enum import CodeEnum
from .criteria_output import CriteriaOutput
from .criteria_response_400 import CriteriaResponse400
from .criterion_row_output import CriterionRowOutput
from .detail_output import DetailOutput
from .engine_enum import EngineEnum
from .estimate_output import EstimateOutput
from .estimate_output_runs import EstimateOutputRuns
from .estimate_output_runs_additional_property import EstimateOutputRunsAdditionalProperty
from .example_line import ExampleLine
from .finding_output import FindingOutput
from .labelled_output import LabelledOutput
from .level_enum import LevelEnum
from .lint_output import LintOutput
from .measured_output import MeasuredOutput
from .measured_output_balanced_accuracy import MeasuredOutputBalancedAccuracy
from .measured_output_confusion import MeasuredOutputConfusion
from .measured_output_tnr import MeasuredOutputTnr
from .measured_output_tpr import MeasuredOutputTpr
from .message_input import MessageInput
from .new_version_input import NewVersionInput
from .opened_output import OpenedOutput
from .paginated_run_row_output_list import PaginatedRunRowOutputList
from .paginated_session_score_output_list import PaginatedSessionScoreOutputList
from .paginated_version_output_list import PaginatedVersionOutputList
from .problem_output import ProblemOutput
from .prompt_input import PromptInput
from .prompt_lint_response_400 import PromptLintResponse400
from .prompt_version_write_response_400 import PromptVersionWriteResponse400
from .prompt_versions_response_400 import PromptVersionsResponse400
from .regression_cancel_response_400 import RegressionCancelResponse400
from .regression_estimate_response_400 import RegressionEstimateResponse400
from .regression_input import RegressionInput
from .regression_input_prompts import RegressionInputPrompts
from .regression_input_split_enum import RegressionInputSplitEnum
from .regression_output import RegressionOutput
from .regression_output_bootstrap_type_0 import RegressionOutputBootstrapType0
from .regression_output_criteria_item import RegressionOutputCriteriaItem
from .regression_output_pooled_type_0 import RegressionOutputPooledType0
from .regression_response_400 import RegressionResponse400
from .regression_start_response_400 import RegressionStartResponse400
from .released_output import ReleasedOutput
from .role_enum import RoleEnum
from .row_problem_output import RowProblemOutput
from .run_cancel_response_400 import RunCancelResponse400
from .run_input import RunInput
from .run_input_efforts import RunInputEfforts
from .run_input_endpoints import RunInputEndpoints
from .run_input_mode_enum import RunInputModeEnum
from .run_input_models import RunInputModels
from .run_input_temperatures import RunInputTemperatures
from .run_input_windows_type_0 import RunInputWindowsType0
from .run_output import RunOutput
from .run_report_response_200 import RunReportResponse200
from .run_report_response_400 import RunReportResponse400
from .run_report_share_response_201 import RunReportShareResponse201
from .run_report_share_split import RunReportShareSplit
from .run_report_split import RunReportSplit
from .run_response_400 import RunResponse400
from .run_row_output import RunRowOutput
from .run_session_scores_response_400 import RunSessionScoresResponse400
from .run_session_scores_split import RunSessionScoresSplit
from .run_start_response_400 import RunStartResponse400
from .run_state_enum import RunStateEnum
from .runs_output import RunsOutput
from .runs_purpose import RunsPurpose
from .runs_response_400 import RunsResponse400
from .session_score_output import SessionScoreOutput
from .set_chats_add_response_400 import SetChatsAddResponse400
from .set_chats_input import SetChatsInput
from .set_chats_output import SetChatsOutput
from .set_output import SetOutput
from .set_response_400 import SetResponse400
from .sets_output import SetsOutput
from .sets_response_400 import SetsResponse400
from .split_by_hand_enum import SplitByHandEnum
from .split_enum import SplitEnum
from .started_output import StartedOutput
from .version_output import VersionOutput
from .version_test_output import VersionTestOutput
from .written_version import WrittenVersion

__all__ = (
    "BlankEnum",
    "CandidateTestOutput",
    "ChatInput",
    "ChatInputMetadata",
    "ChatsInput",
    "ChatsOutput",
    "ChatsOutputIgnored",
    "ChatsOutputRedactions",
    "ChatsSendResponse400",
    "CodeEnum",
    "CriteriaOutput",
    "CriteriaResponse400",
    "CriterionRowOutput",
    "DetailOutput",
    "EngineEnum",
    "EstimateOutput",
    "EstimateOutputRuns",
    "EstimateOutputRunsAdditionalProperty",
    "ExampleLine",
    "FindingOutput",
    "LabelledOutput",
    "LevelEnum",
    "LintOutput",
    "MeasuredOutput",
    "MeasuredOutputBalancedAccuracy",
    "MeasuredOutputConfusion",
    "MeasuredOutputTnr",
    "MeasuredOutputTpr",
    "MessageInput",
    "NewVersionInput",
    "OpenedOutput",
    "PaginatedRunRowOutputList",
    "PaginatedSessionScoreOutputList",
    "PaginatedVersionOutputList",
    "ProblemOutput",
    "PromptInput",
    "PromptLintResponse400",
    "PromptVersionsResponse400",
    "PromptVersionWriteResponse400",
    "RegressionCancelResponse400",
    "RegressionEstimateResponse400",
    "RegressionInput",
    "RegressionInputPrompts",
    "RegressionInputSplitEnum",
    "RegressionOutput",
    "RegressionOutputBootstrapType0",
    "RegressionOutputCriteriaItem",
    "RegressionOutputPooledType0",
    "RegressionResponse400",
    "RegressionStartResponse400",
    "ReleasedOutput",
    "RoleEnum",
    "RowProblemOutput",
    "RunCancelResponse400",
    "RunInput",
    "RunInputEfforts",
    "RunInputEndpoints",
    "RunInputModeEnum",
    "RunInputModels",
    "RunInputTemperatures",
    "RunInputWindowsType0",
    "RunOutput",
    "RunReportResponse200",
    "RunReportResponse400",
    "RunReportShareResponse201",
    "RunReportShareSplit",
    "RunReportSplit",
    "RunResponse400",
    "RunRowOutput",
    "RunSessionScoresResponse400",
    "RunSessionScoresSplit",
    "RunsOutput",
    "RunsPurpose",
    "RunsResponse400",
    "RunStartResponse400",
    "RunStateEnum",
    "SessionScoreOutput",
    "SetChatsAddResponse400",
    "SetChatsInput",
    "SetChatsOutput",
    "SetOutput",
    "SetResponse400",
    "SetsOutput",
    "SetsResponse400",
    "SplitByHandEnum",
    "SplitEnum",
    "StartedOutput",
    "VersionOutput",
    "VersionTestOutput",
    "WrittenVersion",
)
