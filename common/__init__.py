"""What every app shares and no feature owns; imports none of them."""
