"""Hints and errors made from workers' messages."""

from pyconnect_cli.rest.request import page_title, told

PLUGINS = (
    "PluginDesc{klass=class org.apache.kafka.connect.file.FileStreamSourceConnector, name='x'}"
)


def test_the_list_of_plugins_becomes_a_hint() -> None:
    """The list of plugins in Apache's error becomes a hint at the similar name."""
    message = (
        "org.apache.kafka.connect.errors.ConnectException: Failed to find any class that implements"
        f" Connector and which name matches FileStreamSorce, available connectors are: {PLUGINS}"
    )
    assert told(message) == (
        "Failed to find any class that implements Connector and which name matches FileStreamSorce",
        "did you mean `FileStreamSource`?",
    )
    other = told(message.replace("FileStreamSorce", "Debezium"))
    assert str(other.hint).startswith("list the installed plugins: pyconnect plugins list;")
    elsewhere = told(message.replace("FileStreamSorce", "com.example.FileStreamSource"))
    assert elsewhere.hint == other.hint
    package = "org.apache.kafka.connect.file"
    typo = told(message.replace("FileStreamSorce", f"{package}.FileStreamSorce"))
    assert typo.hint == f"did you mean `{package}.FileStreamSourceConnector`?"
    postgres = told(message.replace("FileStreamSorce", "PostgresConnector"))
    assert postgres.hint == other.hint


def test_errors_of_a_configuration_are_kept_without_the_path_of_the_endpoint() -> None:
    """The hint at an endpoint becomes a hint at a command."""
    message = (
        "Connector configuration is invalid and contains the following 1 error(s):\n"
        'Missing required configuration "topic" which has no default value.\n'
        "You can also find the above list of errors at the endpoint"
        " `/connector-plugins/{connectorType}/config/validate`"
    )
    answer = told(message)
    assert answer.message.endswith("no default value.")
    assert "endpoint" not in answer.message
    assert answer.hint == "list the configuration keys: pyconnect plugins describe CLASS"


def test_only_known_messages_are_read() -> None:
    """Unknown messages stay as they are, and an HTML page is read as its title."""
    assert told("Connector x already exists") == ("Connector x already exists", None)
    page = "<html><head><title>Error 400 Ambiguous URI path separator</title></head></html>"
    assert page_title(page) == "Ambiguous URI path separator"
    assert page_title("plain text") is None
    assert page_title("<title></title>") is None
