"""Tell people of their jobs: from stored events to mail, webhooks and chat, beside the control loop."""
