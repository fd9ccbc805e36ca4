"""What a panel calls: it shows a review or a plan, and decides on it by the token that came beside an answer."""
