"""The placement rules of a job, a file for each field: the document, its check, the request, reasons and relaxations."""
