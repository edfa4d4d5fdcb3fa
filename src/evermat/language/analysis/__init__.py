"""The untyped tree to typed, safe, stratified rules."""
