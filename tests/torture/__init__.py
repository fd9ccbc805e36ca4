"""The store under load, kill -9 and database crashes, judged by checkers that do not trust it."""
