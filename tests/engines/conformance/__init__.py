"""What every engine must do, written once; each engine's tests say how it is opened (`EngineConformance.place`)."""
