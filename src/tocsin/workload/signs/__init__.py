"""Signs of misuse that remain when tools are renamed."""
