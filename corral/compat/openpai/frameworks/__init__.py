"""The job types of OpenPAI and FrameworkLauncher: the variables, files and scripts of their tasks."""
