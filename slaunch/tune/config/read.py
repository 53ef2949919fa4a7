"""Reads the configuration file: JSON, or YAML and TOML where their libraries are there."""

from __future__ import annotations

from slaunch.errors import MissingToolError, UsageError

WANTED = "read the tuner's configuration"


def read_file(path: str) -> object:
    """The content of the file, not yet checked.

    Raises:
        UsageError: it cannot be read, or is not what its name says.
        MissingToolError: the library for it is not installed.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read(), path)
    except OSError as error:
        raise UsageError(WANTED, f"{path}: {error.strerror}", "name a readable .json, .yaml or .toml file") from None
    except UnicodeDecodeError as error:
        raise UsageError(WANTED, f"{path}: {error}", "save it as UTF-8") from None


def parse(text: str, path: str) -> object:
    """The content of a text by the end of its file's name."""
    ending = path.rpartition(".")[2].lower()
    if ending == "json":
        return parse_json(text, path)
    if ending in ("yaml", "yml"):
        return parse_yaml(text, path)
    if ending == "toml":
        return parse_toml(text, path)
    raise UsageError(WANTED, f"the name {path}", "name a file that ends in .json, .yaml or .toml")


def parse_json(text: str, path: str) -> object:
    """JSON; a key given twice in one object is an error."""
    import json

    try:
        return json.loads(text, object_pairs_hook=lambda pairs: without_doubles(pairs, path))
    except ValueError as error:
        raise UsageError(WANTED, f"{path}: {error}", "mend the JSON") from None


def without_doubles(pairs: list[tuple[str, object]], path: str) -> dict[str, object]:
    """The object, unless a key stands twice in it: the second would silently win."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(WANTED, f"{path}: {', '.join(twice)} given twice in one object", "leave one of them out")
    return dict(pairs)


def parse_yaml(text: str, path: str) -> object:
    """YAML, by ruamel.yaml or PyYAML."""
    try:
        return _ruamel(text)
    except ImportError:
        pass
    except Exception as error:
        raise UsageError(WANTED, f"{path}: {error}", "mend the YAML") from None
    try:
        import yaml  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        todo = "install slaunch[tune], or write the file as JSON"
        raise MissingToolError(WANTED, f"{path} is YAML, and neither ruamel.yaml nor yaml is installed", todo) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(WANTED, f"{path}: {error}", "mend the YAML") from None


def _ruamel(text: str) -> object:
    from ruamel.yaml import YAML

    return YAML(typ="safe").load(text)


def parse_toml(text: str, path: str) -> object:
    """TOML, by the standard library of Python 3.11 or tomli."""
    try:
        import tomllib
    except ImportError:
        try:
            import tomli as tomllib  # type: ignore[import-not-found,no-redef,unused-ignore]
        except ImportError:
            todo = "use Python 3.11, install tomli, or write the file as JSON"
            raise MissingToolError(WANTED, f"{path} is TOML, and tomli is not installed", todo) from None
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise UsageError(WANTED, f"{path}: {error}", "mend the TOML") from None
