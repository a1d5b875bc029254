"""Questions that graph queries prove, with references into the documents."""
