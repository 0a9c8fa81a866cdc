"""The one error that composing raises."""


class GraftError(Exception):
    """Something that stops composing, and where it stands.

    Args:
        message: What is wrong, and where possible what to do about it.
        file: The file at fault, as a path in the repository.
        line: The line in that file.
        name: The definition at fault.
    """

    def __init__(self, message, file=None, line=None, name=None):
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.name = name

    def __str__(self):
        where = str(self.file) if self.file else ""
        if self.file and self.line:
            where += f":{self.line}"
        parts = (where, f"`{self.name}`" if self.name else "", self.message)
        return ": ".join(part for part in parts if part)
