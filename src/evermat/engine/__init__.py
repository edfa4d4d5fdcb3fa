"""What both engines share and neither owns."""
