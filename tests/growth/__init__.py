"""What takes longer than its input is long: every public function that reads text, on hostile texts of two lengths."""
