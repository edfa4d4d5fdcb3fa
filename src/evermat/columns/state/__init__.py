"""The sets of a materialisation, and an update of them."""
