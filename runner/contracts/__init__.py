"""JSON Schemas, generated from the model and checked in; only this room imports jsonschema."""
