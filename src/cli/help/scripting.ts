/** `rushes help scripting`; docs/scripting.md begins with this text. */
export const SCRIPTING = `Standard output carries the answer and nothing else, standard error everything
else. A terminal changes the form, never what is done.

  rushes run image "a fox"              one output URL per line
  rushes run image "a fox" -o fox.png   one path per line, of files that are whole
  rushes run image "a fox" -o -         the bytes of the one output
  rushes run video "dusk" --no-wait     one run id per line
  rushes status <id>                    id, status, URLs, with tabs between them
  rushes <command> --json               one JSON object per line; errors as JSON
                                        on standard error

A - reads standard input: a prompt (run image -), a source (-i -), ids (wait -).

  rushes run image "a fox" | rushes run video "it runs" -i - -o fox.mp4
  rushes run video "dusk" --no-wait | rushes wait - -d
  rushes run image "a fox" --json | jq -r '.output.urls[]'

Use set -euo pipefail. A - that yields nothing is exit 2, and nothing is sent.

To pay once: a file of -o that exists is exit 2 before anything is sent; --reuse
takes a run of the journal that made the same; rushes batch makes what is missing
or stale of a manifest, and nothing else.

Act on the exit code. 2 to 5: mend the call, the key or the account. 7, 9: try
again later. 10: the run failed. 11: it goes on, rushes wait <id>. 12: it is paid
for and a file is missing, rushes wait <id> -d. 13: a run may exist and cost money,
do not send it again by itself. All of them: rushes help exit-codes.

No service, no key, no bill: --local. Errors on purpose: rushes serve --fault.
`
