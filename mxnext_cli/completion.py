"""`mx completion`: scripts that complete commands, options and choices without running `mx`."""

from __future__ import annotations

import argparse

from .parser import build_parser

Options = dict[str, list[str]]  # command -> its options


def run(args: argparse.Namespace) -> int:
    """Print the script of the chosen shell."""
    print(SCRIPTS[args.shell](), end="")
    return 0


def _commands() -> dict[str, argparse.ArgumentParser]:
    parser = build_parser(complete=True)
    (sub,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(sub.choices)


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a command, its subcommands, and the choices of its arguments."""
    words: list[str] = []
    for action in parser._actions:
        words += [option for option in action.option_strings if option.startswith("--")]
        if not action.option_strings and action.choices:
            words += [str(choice) for choice in action.choices]
    return words


def _choices(parser: argparse.ArgumentParser) -> Options:
    """Return the values that options accept, where they are listed."""
    return {
        option: [str(choice) for choice in action.choices]
        for action in parser._actions
        if action.choices and action.option_strings
        for option in action.option_strings
    }


def _summaries() -> dict[str, str]:
    from .parser import COMMANDS

    return {name: command.summary for name, command in COMMANDS.items()}


def bash_script() -> str:
    """Return the completion script of bash."""
    cases = []
    for name, parser in _commands().items():
        for option, values in _choices(parser).items():
            cases.append(
                f'    {name}:{option}) COMPREPLY=($(compgen -W "{" ".join(values)}" -- "$word"))'
                " && return ;;"
            )
    words = "\n".join(
        f'    {name}) words="{" ".join(_words(parser))}" ;;' for name, parser in _commands().items()
    )
    return f"""\
_mx() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}"
  local command="${{COMP_WORDS[1]}}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join(_commands())} --help --version" -- "$word"))
    return
  fi
  case "$command:$previous" in
{chr(10).join(cases)}
  esac
  case "$command" in
{words}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
}}
complete -o filenames -F _mx mx
"""


def zsh_script() -> str:
    """Return the completion script of zsh."""
    names = "\n".join(f"    '{n}:{_quoted(s)}'" for n, s in _summaries().items())
    words = "\n".join(
        f"    {name}) compadd -- {' '.join(_words(parser))} ;;"
        for name, parser in _commands().items()
    )
    return f"""\
#compdef mx
_mx() {{
  local -a commands
  commands=(
{names}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
{words}
  esac
  _files
}}
compdef _mx mx
"""


def fish_script() -> str:
    """Return the completion script of fish."""
    lines = []
    for name, parser in _commands().items():
        summary = _quoted(_summaries()[name])
        lines.append(f"complete -c mx -n __fish_use_subcommand -f -a {name} -d '{summary}'")
        seen = f"-n '__fish_seen_subcommand_from {name}'"
        for action in parser._actions:
            about = _quoted((action.help or "").split(";")[0])
            for option in action.option_strings:
                if option.startswith("--"):
                    values = " ".join(map(str, action.choices)) if action.choices else ""
                    listed = f" -x -a '{values}'" if values else ""
                    lines.append(f"complete -c mx {seen} -l {option[2:]}{listed} -d '{about}'")
            if not action.option_strings and action.choices:
                lines.append(f"complete -c mx {seen} -a '{' '.join(map(str, action.choices))}'")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("'", "").replace(":", " ").replace("%%", "%")


SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
