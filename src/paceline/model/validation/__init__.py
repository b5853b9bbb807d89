"""How wrong predictions are: splits fixed before, baselines of others, and the figures that every validation prints."""
