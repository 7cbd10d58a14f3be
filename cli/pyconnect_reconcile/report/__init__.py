"""What a run answers: one document, the page and charts drawn from it, the files that hold both."""
