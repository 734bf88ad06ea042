"""What commands load: models, their inputs, and facts about files."""
