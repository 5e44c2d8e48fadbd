"""JSON bodies, strictly."""

from rest_framework.parsers import JSONParser


class StrictJSONParser(JSONParser):
    strict = True
