"""HiveD's annotation of pods, translated to fields of a job."""
