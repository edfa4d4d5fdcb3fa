"""From text to a typed, stratified program. Knows nothing of how facts are stored."""
