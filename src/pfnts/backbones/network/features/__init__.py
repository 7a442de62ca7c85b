"""Simple predictions and notes that the network receives with every row."""
