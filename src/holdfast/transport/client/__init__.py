"""The client side: the stdio relay, dialling and launching the server. Standard library only."""
