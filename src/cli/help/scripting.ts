/** `rushes help scripting`; docs/scripting.md begins with this text. */
export const SCRIPTING = `Standard output has the answer and nothing else; messages go to standard error.
A terminal changes only how things look.

  rushes run image "a fox"              one output URL per line
  rushes run image "a fox" -o fox.png   one file path per line, of complete files
  rushes run image "a fox" -o -         the bytes of one output
  rushes run video "dusk" --no-wait     one run id per line
  rushes status <id>                    id, status and URLs, separated by tabs
  rushes <command> --json               one JSON object per line; errors are JSON
                                        on standard error

A - reads standard input: a prompt (run image -), a source (-i -), ids (wait -).

  rushes run image "a fox" | rushes run video "it runs" -i - -o fox.mp4
  rushes run video "dusk" --no-wait | rushes wait - -d
  rushes run image "a fox" --json | jq -r '.output.urls[]'

Use set -euo pipefail. If a - reads nothing, rushes exits with 2 and sends nothing.

To pay only once: if the file of -o exists, rushes exits with 2 before it sends
anything. --reuse uses an earlier run with the same input. rushes batch creates
only the assets of a manifest that are missing or out of date.

Check the exit code:

  2 to 5   fix the command, the API key or the account
  7, 9     try again later
  10       the run failed
  11       the run is still running: rushes wait <id>
  12       the run is paid for, but a file is missing: rushes wait <id> -d
  13       a run may exist and cost money: do not send it again automatically

All exit codes: rushes help exit-codes

To test without a service, a key or costs, use --local. To test error handling,
use rushes serve --fault.
`
