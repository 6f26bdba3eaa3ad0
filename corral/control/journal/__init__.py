"""The journal of decisions: every input of the control core and a hash of each batch, in one file, and their replay."""
