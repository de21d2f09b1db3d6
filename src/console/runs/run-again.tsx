/** Commands that create a run again: `rushes`, curl and Node.js. */
import { useState } from 'preact/hooks'
import type { RunDetails } from '../../protocol/console.js'
import { RUNS_PATH } from '../../protocol/id.js'
import type { ModelDocument } from '../../protocol/models.js'
import { isSentImage, runWords, type SentImage } from '../../protocol/parameters.js'
import { printable, printableJson, quoteWord } from '../../protocol/text.js'
import { CodeBlock } from '../components/copy.js'
import { RadioGroup } from '../components/field.js'
import { Card } from '../components/page.js'
import { useSession } from '../session.js'
import type { ShownRun } from './run-details.js'

/** Shows one of the commands, which the user chooses. */
export function Again({ run, document }: ShownRun) {
  const { base_url } = useSession()
  const { rushes, curl, node } = commandsOf(run, base_url, document)
  const formats = {
    rushes: { code: rushes, label: 'rushes command' },
    curl: { code: curl, label: 'curl command' },
    'Node.js': { code: node, label: 'Node.js module' },
    JSON: { code: printableJson(run.service, 2), label: 'JSON of the run' },
  }
  const [chosen, setChosen] = useState<keyof typeof formats>('rushes')
  const names = Object.keys(formats) as readonly (typeof chosen)[]
  return (
    <Card title="Create it again" about="The same run from a terminal or a program. It needs an API key.">
      <RadioGroup
        label="Format"
        value={chosen}
        choices={names.map((name) => ({ value: name, label: name }))}
        onChange={setChosen}
      />
      <CodeBlock {...formats[chosen]} />
    </Card>
  )
}

interface Commands {
  /** Command for a POSIX shell. */
  readonly rushes: string
  /** Command for bash and zsh. */
  readonly curl: string
  /** ES module for Node.js 20 or later. */
  readonly node: string
}

type CommandRun = Pick<RunDetails, 'kind' | 'model' | 'input'>

/** Without the document of the model, the flags are not known, and the command passes the input as JSON. */
export function commandsOf(run: CommandRun, baseUrl: string, document: ModelDocument | undefined): Commands {
  const base = baseUrl.replace(/\/+$/, '')
  return {
    rushes: rushesCommand(run, base, document),
    curl: curlCommand(run, base),
    node: nodeModule(run, base),
  }
}

/** An image that was sent as data. The run does not contain its bytes, so the user must provide the file. */
interface MissingFile {
  readonly name: string
  readonly image: SentImage
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'avif',
}

const fileOf = (image: SentImage, index: number): MissingFile => ({
  name: `image-${index + 1}.${EXTENSIONS[image.content_type] ?? 'img'}`,
  image,
})

const sourcesOf = ({ input }: CommandRun): readonly unknown[] =>
  Array.isArray(input.image_urls) ? input.image_urls : []

const missingFiles = (run: CommandRun): readonly MissingFile[] =>
  sourcesOf(run).flatMap((source, index) => (isSentImage(source) ? [fileOf(source, index)] : []))

const noteOf = ({ name, image: { bytes, content_type: type } }: MissingFile): string =>
  `${name}: an image of ${bytes} bytes (${printable(type)}) that was sent with the run. Replace it with your own file.`

function rushesCommand(run: CommandRun, base: string, document: ModelDocument | undefined): string {
  const { image_urls: _, ...others } = run.input
  const sources = sourcesOf(run)
  const flagged = sources.map((source, index) =>
    isSentImage(source) ? fileOf(source, index).name : sourceWord(source),
  )
  // `-i` accepts only files and URLs. If there is another source, put all sources in `--input`.
  const areFlags = flagged.every((word) => word !== undefined)
  const input = areFlags ? others : run.input
  const { words, rest } =
    document === undefined ? { words: [], rest: input } : runWords(document.input, input)
  const parts = [
    ['rushes', 'run', run.kind, ...words].join(' '),
    ...(areFlags ? flagged.map((word) => `-i ${quoteWord(word ?? '')}`) : []),
    ...(Object.keys(rest).length > 0 ? [`--input ${quoteWord(printableJson(rest))}`] : []),
    `--model ${quoteWord(run.model)}`,
    `--base-url ${quoteWord(base)}`,
  ]
  return [...missingFiles(run).map((file) => `# ${noteOf(file)}`), parts.join(' \\\n  ')].join('\n')
}

const sourceWord = (source: unknown): string | undefined =>
  typeof source === 'string' && /^https?:\/\//i.test(source) ? source : undefined

/** Sends the JSON through standard input: a shell argument has at most 128 KiB, and a prompt can be longer. */
function curlCommand(run: CommandRun, base: string): string {
  const files = missingFiles(run)
  const { model, input } = run
  // The service refuses this text as a data: URL, so that a run is not created before the file is in its place.
  const image_urls = sourcesOf(run).map((source, index) =>
    isSentImage(source) ? `data: URL of ${fileOf(source, index).name}` : source,
  )
  const body = { model, input: { ...input, ...(files.length > 0 && { image_urls }) } }
  // The heredoc is safe: JSON escapes newlines in strings, so no line of it can be the delimiter `JSON`.
  const request = [
    `curl -sS ${quoteWord(`${base}${RUNS_PATH}`)}`,
    '-H "Authorization: Bearer $RUSHES_API_KEY"',
    "-H 'Content-Type: application/json'",
    `--data-binary @- <<'JSON'\n${printableJson(body, 2)}\nJSON`,
  ].join(' \\\n  ')
  return [...files.map((file) => `# ${noteOf(file)}`), request].join('\n')
}

function nodeModule(run: CommandRun, base: string): string {
  const { model, input } = run
  const files = missingFiles(run)
  const sources = sourcesOf(run).map((source, index) => {
    if (!isSentImage(source)) return printableJson(source)
    const { name, image } = fileOf(source, index)
    return `await dataUrl(${JSON.stringify(name)}, ${printableJson(image.content_type)})`
  })
  return [
    '// Save as run.mjs, then: RUSHES_API_KEY=… node run.mjs',
    ...files.map((file) => `// ${noteOf(file)}`),
    ...(files.length > 0 ? ["import { readFile } from 'node:fs/promises'", ''] : []),
    `const runs = ${JSON.stringify(`${base}${RUNS_PATH}`)}`,
    'const headers = {',
    "  authorization: 'Bearer ' + process.env.RUSHES_API_KEY,",
    "  'content-type': 'application/json',",
    '}',
    ...(files.length > 0
      ? [
          'const dataUrl = async (path, type) =>',
          "  'data:' + type + ';base64,' + (await readFile(path)).toString('base64')",
        ]
      : []),
    '',
    `const request = ${printableJson({ model, input }, 2)}`,
    ...(files.length > 0 ? [`request.input.image_urls = [${sources.join(', ')}]`] : []),
    '',
    "const created = await fetch(runs, { method: 'POST', headers, body: JSON.stringify(request) })",
    'if (created.status !== 201) throw new Error(await created.text())',
    'let run = await created.json()',
    "while (['queued', 'processing'].includes(run.status)) {",
    '  await new Promise((resolve) => setTimeout(resolve, 2000))',
    "  const response = await fetch(runs + '/' + run.id, { headers })",
    '  if (!response.ok) throw new Error(await response.text())',
    '  run = await response.json()',
    '}',
    // Split in two, so that the source of this page contains no call that writes to the browser console.
    ['console', 'log(run.output?.urls ?? run.error)'].join('.'),
  ].join('\n')
}
