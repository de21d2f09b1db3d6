/** The texts of `rushes help <topic>`. The docs contain the same rows and texts. */
import { EXIT, OWN_CODES } from '../../errors.js'
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import {
  builtInSchema,
  describeValues,
  flagOf,
  listedValues,
  negatedFlagOf,
} from '../../protocol/parameters.js'
import { PROBLEMS } from '../../protocol/problems.js'
import { FURTHER_ENVIRONMENT, SETTINGS, type SettingRow, SHARED_ENVIRONMENT } from '../settings/table.js'
import { wrapWords } from '../terminal/format.js'
import { runKeyPaths } from '../terminal/run-json.js'
import type { TOPICS } from './format-help.js'

interface ExitMeaning {
  readonly happened: string
  /** What a script should do. */
  readonly next: string
}

export const EXIT_MEANINGS: Readonly<Record<keyof typeof EXIT, ExitMeaning>> = {
  ok: { happened: 'done', next: 'continue' },
  bug: { happened: 'a bug in `rushes`', next: 'run it again with `--debug` and report the output' },
  usage: {
    happened: 'a flag, argument, setting or input is not valid; nothing was sent',
    next: 'fix the command; a retry does not help',
  },
  refused: {
    happened: 'the service refused the request: 400, or another 4xx not listed below',
    next: 'fix the input; a retry does not help',
  },
  key: {
    happened: 'no API key, or the service rejected it (401)',
    next: 'run `rushes login` or set `RUSHES_API_KEY`',
  },
  account: {
    happened: 'the account does not allow it: 402, 403, or 429 `USAGE_EXCEEDED`',
    next: 'stop; add credits or raise a limit first',
  },
  notFound: {
    happened: 'run not found (404 `run_not_found`)',
    next: 'check the id, the API key and the service URL',
  },
  rateLimited: {
    happened: 'rate limit exceeded (429), after the retries',
    next: 'wait; if the error names a run, run `rushes wait <id>`, otherwise run it again',
  },
  serviceBroken: {
    happened:
      '5xx for a status request after the retries, an invalid response, or the service redirected a create (not with 303)',
    next: 'if the error names a run, run `rushes wait <id>` later',
  },
  network: {
    happened: 'the service could not be reached, after the retries; the failed request created nothing',
    next: 'if the error names a run, run `rushes wait <id>` later, otherwise run it again',
  },
  runFailed: {
    happened: 'the run failed; for `batch --check`, an asset is missing or out of date',
    next: 'read the error; a new run costs again',
  },
  waitTimeout: {
    happened: 'the timeout passed; the run is still running',
    next: 'run `rushes wait <id>`',
  },
  downloadFailed: {
    happened: 'the run succeeded, but an output could not be downloaded or written',
    next: 'run `rushes download <id>`; do not create it again',
  },
  outcomeUnknown: {
    happened:
      'a create was sent and its outcome is unknown: no answer, a timeout (also 408), 5xx, 303, or a 2xx other than 201',
    next: 'do not send it again automatically: a run may exist and cost money',
  },
  sighup: { happened: 'interrupted by SIGHUP; existing runs continue', next: 'run `rushes wait <id>`' },
  sigint: {
    happened: 'interrupted by SIGINT (Ctrl-C); existing runs continue',
    next: 'run `rushes wait <id>`',
  },
  stdoutClosed: {
    happened: 'the reader closed standard output (`\\| head -1`)',
    next: 'nothing; the run did not fail',
  },
  sigterm: { happened: 'interrupted by SIGTERM; existing runs continue', next: 'run `rushes wait <id>`' },
}

export const exitRows = (): readonly (readonly [number, ExitMeaning])[] =>
  (Object.keys(EXIT) as (keyof typeof EXIT)[]).map((name) => [EXIT[name], EXIT_MEANINGS[name]])

/** The text of `rushes help exit-codes`. docs/exit-codes.md has the same rows. */
const exitCodes = (): string => `Exit codes, and what to do:

${listing(exitRows().map(([code, { happened, next }]) => [String(code), `${happened} -> ${next}`]))}

With several runs, the exit code is the first of these that applies: 13, 5, 4, 3,
7, 8, 9, 6, 10, 11, 12. A bug, a usage error or a signal comes before all of them.

With any exit code, an error that names a run (run_id with --json) means that the
run exists: rushes wait <id>. Exit code 2 means that nothing was sent.

With --json, an error is one line on standard error; every key is always present:

  {"error":{"code":"...","message":"...","hint":"...","http_status":402,"exit_code":5,"run_id":null}}

The code comes from the service:

${listing(Object.entries(PROBLEMS).map(([code, { status, exit, cause }]) => [code, `HTTP ${status}, exit ${exit}: ${cause}`]))}

or from rushes:

${listing(Object.entries(OWN_CODES).map(([code, { exit, about }]) => [code, `exit ${exit}: ${withoutMarkdown(about)}`]))}
`

const COLUMNS = 80

/** Formats terms and descriptions in two columns, 80 characters wide. */
function listing(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([term]) => term.length)) + 2
  return rows
    .map(([term, text]) => {
      const [first = '', ...others] = wrapWords(withoutMarkdown(text), COLUMNS - width - 2)
      return [
        `  ${term.padEnd(width)}${first}`,
        ...others.map((line) => `  ${' '.repeat(width)}${line}`),
      ].join('\n')
    })
    .join('\n')
}

const withoutMarkdown = (markdown: string): string => markdown.replace(/`/g, '').replace(/\\\|/g, '|')

const settings: readonly SettingRow[] = Object.values(SETTINGS)

const variableRows = settings.flatMap(({ environment, about, default: defaultValue }) =>
  environment === undefined
    ? []
    : [[environment, defaultValue === undefined ? about : `${about} (default ${defaultValue})`] as const],
)

const keyRows = settings.flatMap(({ key, about }) => (key === undefined ? [] : [[key, about] as const]))

/** Rows without the links and the references that make sense only in docs/environment.md. */
const rowsOf = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables).map(
    ([name, about]) => [name, about.replace(/\[(.*?)\]\(.*?\)/g, '$1').replace(' below', '')] as const,
  )

/** The text of `rushes help environment`. docs/environment.md has the same rows. */
const environment =
  (): string => `A flag overrides an environment variable, which overrides the config file, which
overrides the default. An empty variable counts as unset.

Settings:

${listing(variableRows)}

Config keys of a profile (rushes config set <key> <value>):

${listing(keyRows)}

Other variables:

${listing(rowsOf(FURTHER_ENVIRONMENT))}

Common variables:

${listing(rowsOf(SHARED_ENVIRONMENT))}

The API key is taken from the first of these that is set: RUSHES_API_KEY, the file
named by RUSHES_API_KEY_FILE, RUSHES_API_KEY_COMMAND, apiKeyCommand in the config
file, the key stored by rushes login. It cannot be given as a flag: it would show
in ps and in the shell history.
`

function flagWithValue(name: string, schema: ParameterSchema): string {
  const flag = flagOf(name)
  const values = describeValues(schema, '|')
  if (schema.type === 'boolean') return `${flag}|${negatedFlagOf(name)}`
  if (schema.type === 'array') return `${flag} <URL, path, run:<id> or -> (${values})`
  return `${flag} ${listedValues(schema) === undefined ? `<${values.replace(/^a /, '')}>` : values}`
}

const flagsOf = (kind: Kind): string =>
  Object.entries(builtInSchema(kind).properties)
    .filter(([name]) => name !== 'prompt')
    .map(([name, schema]) => `\`${flagWithValue(name, schema)}\``)
    .join(', ')

const jsonKeys = (): string => {
  const keys = runKeyPaths().map((path) => `\`${path}\``)
  const plain = 'Without `--json`: one URL per line, or with `-o`/`-d` one path per line.'
  return wrapWords(`${keys.join(', ')}. ${plain}`, 105).join('\n  ')
}

/** The text of `rushes help agents`: a short reference in Markdown. */
export const agents = (): string => `# rushes, for a language model

\`rushes\` creates asynchronous video and image runs at a service, waits for them and downloads the results. Creating a run
costs money; nothing else does. Without a terminal, no command asks questions.

If your client can start MCP servers, \`rushes mcp\` gives you the same as tools: see \`docs/agents.md\`.

## Before the first run

* \`rushes doctor --json\` checks service URL, models, key, network and disk. It is free.
* Needed: \`RUSHES_BASE_URL\`, \`RUSHES_API_KEY\`, \`RUSHES_IMAGE_MODEL\` and \`RUSHES_VIDEO_MODEL\`, or the same stored with
  \`rushes config\` and \`rushes login\`. Never write the key on a command line.
* To practise without key, network or cost, add \`--local\`: the results are drawn previews, not generated.
* First ask for the estimate: \`--dry-run --json\` sends nothing and prints the request, \`estimate\` and \`currency\` (null
  without a price). \`--max-cost <amount>\` exits with 2 if the estimate is higher.
  \`rushes spend\` sums the estimates of earlier runs.

## Create

\`\`\`sh
rushes run image "a red fox in fresh snow" -o fox.png --json
rushes run video "it runs" -i fox.png -o fox.mp4 --json
rushes run image --prompt-file prompt.txt -n 4 -o 'fox-{index}.{ext}' --json
\`\`\`

Any other model: \`rushes run model <provider/name> --input '{"prompt": "..."}' -o <path>\`. \
If the prompt may start with a dash, use \`--prompt "..."\` or \`--prompt-file <path>\`. \
Values are checked before anything is sent:

${KINDS.map((kind) => `* ${kind}: ${flagsOf(kind)}`).join('\n')}

Other models have other parameters, and each is a flag: \`rushes models <name>\` shows them, with \`--json\` as JSON Schema.
\`rushes models\` lists the known models with their prices. A run takes seconds to many minutes. Raise the time limit of the tool
that calls rushes, or use two calls: \`rushes run ... --no-wait\` prints the id immediately, \
and \`rushes wait <id> --timeout 5m -o <path>\`
waits for it; repeat it as often as needed.

## Read the result

* Standard output has the result. With \`--json\`: one object per run and line, with all keys always present:
  ${jsonKeys()}
* With \`--json\`, standard error has JSON lines: \`{"error":{"code","message","hint","http_status","exit_code","run_id"}}\` or
  \`{"warning":{"message"}}\`. \`hint\` says what to do next.
* The JSON Schemas are in \`docs/schemas\`.

## Check the exit code

| code | what happened | what to do |
|--:|---|---|
${exitRows()
  .map(([code, { happened, next }]) => `| ${code} | ${happened} | ${next} |`)
  .join('\n')}

## Avoid paying twice

1. Never repeat a create after 11, 12 or 13, nor after another error with a \`run_id\`, except 10. After 13, check first:
   \`rushes list --status unconfirmed --json\`.
2. To repeat a request without paying, add \`--reuse\`. For many assets, \
use \`rushes batch <manifest>\`, first with \`--dry-run\`:
   it creates only assets that are missing or out of date; a second call costs nothing. \
\`--max-runs <n>\` limits the creates of a call.
   A manifest: \`runs: [{name: fox, kind: image, prompt: a red fox, quality: high, output: assets/fox.png}]\`.
3. To stop a run that is no longer needed: \`rushes cancel <id>\`. A service that cannot cancel runs answers with 3.
4. If you lost an id: \`rushes list --json\` lists every run created on this machine; \`rushes wait --last\` waits for the newest.
5. Existing files are never replaced without \`--overwrite\`. \
If the file name is known before the create, the exit code is 2 and nothing is
   paid.
6. rushes keeps the limit of 20 requests in 10 s, across processes. Run commands in parallel; do not poll in a loop.

More: \`rushes help exit-codes\`, \`rushes help environment\`, \`rushes help scripting\`, \`rushes <command> --help\`.
`

/** The text of `rushes help scripting`. */
const SCRIPTING = `Standard output has the result and nothing else; messages go to standard error.
A terminal changes only how things look.

  rushes run image "a fox"              one output URL per line
  rushes run image "a fox" -o fox.png   one file path per line, of complete files
  rushes run image "a fox" -o -         the bytes of one output
  rushes run video "dusk" --no-wait     one run id per line
  rushes status <id>                    id, status and URLs, separated by tabs
  rushes cancel <id>                    the same, after the run was canceled
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

  2 to 6   fix the command, the API key, the account or the id
  7 to 9   if the error names a run: rushes wait <id>; otherwise try again later
  10       the run failed
  11       the run is still running: rushes wait <id>
  12       the run is paid for, but a file is missing: rushes download <id>
  13       a run may exist and cost money: do not send it again automatically

All exit codes: rushes help exit-codes

To test without a service, a key or costs, use --local. To test error handling,
use rushes serve --fault.
`

export const TOPIC_TEXTS: Readonly<Record<keyof typeof TOPICS, () => string>> = {
  'exit-codes': exitCodes,
  environment,
  scripting: () => SCRIPTING,
  agents,
}
