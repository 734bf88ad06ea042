"""Layers over sequences: recurrent, attention, masks, the CTC loss."""
