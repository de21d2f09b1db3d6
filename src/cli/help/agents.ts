/** `rushes help agents`: the contract in short, as Markdown. docs/agents.md is this text. */
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import {
  describeValues,
  flagOf,
  listedValues,
  negatedFlagOf,
  parametersOf,
} from '../../protocol/parameters.js'
import { exitRows } from './exit-codes.js'

function flagWithValue(name: string, schema: ParameterSchema): string {
  const flag = flagOf(name)
  const values = describeValues(schema, '|')
  if (schema.type === 'boolean') return `${flag}|${negatedFlagOf(name)}`
  if (schema.type === 'array') return `${flag} <URL, path, run:<id> or -> (${values})`
  return `${flag} ${listedValues(schema) === undefined ? `<${values.replace(/^a /, '')}>` : values}`
}

const flagsOf = (kind: Kind): string =>
  Object.entries(parametersOf(kind))
    .filter(([name]) => name !== 'prompt')
    .map(([name, schema]) => `\`${flagWithValue(name, schema)}\``)
    .join(', ')

export const agents = (): string => `# rushes, for a language model

\`rushes\` creates asynchronous video and image runs at a service, waits for them and downloads the results. Creating a run
costs money; nothing else does. Without a terminal, no command asks questions.

If your client can start MCP servers, \`rushes mcp\` gives you the same as tools: see \`docs/mcp.md\`.

## Before the first run

* \`rushes doctor --json\` checks service URL, models, key, network and disk. It is free.
* Needed: \`RUSHES_BASE_URL\`, \`RUSHES_API_KEY\`, \`RUSHES_IMAGE_MODEL\` and \`RUSHES_VIDEO_MODEL\`, or the same stored with
  \`rushes config\` and \`rushes login\`. Never write the key on a command line.
* To practise without key, network or cost, add \`--local\`: the results are drawn previews, not generated.
* \`--dry-run\` prints the request and sends nothing.

## Create

\`\`\`sh
rushes run image "a red fox in fresh snow" -o fox.png --json
rushes run video "it runs" -i fox.png -o fox.mp4 --json
rushes run image --prompt-file prompt.txt -n 4 -o 'fox-{index}.{ext}' --json
\`\`\`

Any other model: \`rushes run model <provider/name> --input '{"prompt": "..."}' -o <path>\`. If the prompt may start with a dash, use \`--prompt "..."\` or \`--prompt-file <path>\`. Values are checked before anything is sent:

${KINDS.map((kind) => `* ${kind}: ${flagsOf(kind)}`).join('\n')}

\`rushes models --json\` prints the same as JSON Schema. A run takes seconds to many minutes. Raise the time limit of the tool
that calls rushes, or use two calls: \`rushes run ... --no-wait\` prints the id immediately, and \`rushes wait <id> --timeout 5m -o <path>\`
waits for it; repeat it as often as needed.

## Read the answer

* Standard output has the answer. With \`--json\`: one object per run and line, with all keys always present:
  \`id\`, \`kind\`, \`model\`, \`status\`, \`output.urls\`, \`files[].path\`, \`error\`, \`created_at\`, \`finished_at\`,
  \`elapsed_ms\`, \`service\`. Without \`--json\`: one URL per line, or with \`-o\`/\`-d\` one path per line.
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

1. Never repeat a create after 11, 12 or 13. After 13, check first: \`rushes list --status unconfirmed --json\`.
2. To repeat a request without paying, add \`--reuse\`. For many assets, use \`rushes batch <manifest>\`, first with \`--dry-run\`:
   it creates only assets that are missing or out of date; a second call costs nothing. \`--max-runs <n>\` limits the creates of a call.
   A manifest: \`runs: [{name: fox, kind: image, prompt: a red fox, quality: high, output: assets/fox.png}]\`.
3. If you lost an id: \`rushes list --json\` lists every run created on this machine; \`rushes wait --last\` waits for the newest.
4. Existing files are never replaced without \`--overwrite\`. If the file name is known before the create, the exit code is 2 and nothing is
   paid.
5. rushes keeps the limit of 20 requests in 10 s, across processes. Run commands in parallel; do not poll in a loop.

More: \`rushes help exit-codes\`, \`rushes help environment\`, \`rushes help scripting\`, \`rushes <command> --help\`.
`
