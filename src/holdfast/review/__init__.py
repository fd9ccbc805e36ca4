"""Review by a person: what an agent proposes is shown, decided on by a person, and only then applied."""
