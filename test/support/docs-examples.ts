/**
 * The shell examples of README.md and docs/, with their setup. Examples below one heading share a folder and a home,
 * and run in order. If each line is a plain command of `rushes`, `docs-examples.test.ts` runs them in process.
 * `docs-examples.system.ts` runs the others with bash.
 */
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ONE_PIXEL_PNG } from './engines.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** Code blocks that do not run here, by their first line, with the reason. */
const NOT_HERE: readonly { readonly begins: string; readonly why: string }[] = [
  { begins: 'npm ci && npx', why: 'installs; e2e/local.test.ts runs the command' },
  { begins: 'export AWS_REGION=', why: 'needs a bucket; e2e/storage.system.ts' },
  { begins: 'rushes serve --storage', why: 'needs a bucket; e2e/storage.system.ts' },
  { begins: 'rushes admin migrate --from', why: 'needs PostgreSQL; service/migrate.system.ts' },
  { begins: 'aws s3 sync', why: 'needs a bucket and the tool of AWS' },
  { begins: 'npm cit', why: 'installs, and runs this very test' },
  { begins: 'npm install ./rushes', why: 'library-package.system.ts installs the packed tarball' },
  { begins: 'faulty=$(mktemp -d)', why: 'docs-faults.system.ts' },
  { begins: '#!/usr/bin/env bash\nset -euo pipefail\n. ./faulty.sh', why: 'docs-faults.system.ts' },
  { begins: 'data=./service backup=./backup', why: 'docs-backup.system.ts: on the data of a service' },
  { begins: 'backup=./backup restored=./restored', why: 'docs-backup.system.ts' },
  { begins: 'mkdir -m 700 ./moved', why: 'docs-backup.system.ts' },
  { begins: 'rushes batch examples/', why: 'examples.system.ts: on a copy of the examples' },
  {
    begins: 'rushes run image --local --engine sdcpp:http://127.0.0.1:1234 "a red fox"  ',
    why: 'needs servers of models; service/engines/docs-commands.test.ts',
  },
  {
    begins: 'rushes admin run',
    why: 'needs a run of another kind; service/cancel.test.ts, service/jobs.test.ts',
  },
  { begins: 'rushes cancel run_7k2m9x  ', why: 'also the command of an operator; service/cancel.test.ts' },
  { begins: 'rushes models search', why: 'needs fal and Replicate; cli/imports/import.test.ts' },
  { begins: 'rushes models import fal:', why: 'needs fal; cli/imports/import.test.ts' },
  { begins: 'npm run build && node deploy/executable.mjs', why: 'needs a clone; executable.system.ts' },
  { begins: 'rushes doctor --models', why: 'needs servers of models; cli/doctor-models.test.ts' },
]

/** Lines that do not run here, by their beginning, with the reason. */
const LINES_NOT_HERE: Readonly<Record<string, string>> = {
  'rushes run image --local --engine images:': 'needs a server of models; cli/local-engine.test.ts',
  'rushes models save': 'needs an earlier command with --engine; cli/local-engine.test.ts',
  'source <(rushes completion zsh)': 'for another shell; e2e/completion.test.ts',
  'rushes completion fish > ~/.config/fish/completions/rushes.fish': 'needs the folder of the shell',
}

/** Setup of the examples below a heading, or below all headings of a page. */
export interface Given {
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Whether the example starts without settings: it logs in and types the key. */
  readonly isNewUser?: boolean
  /** Script that runs before the first block. If it prints an id, that id replaces the one in the examples. */
  readonly before?: string
  /** Script that uses the service started by the block. */
  readonly asks?: string
  /** Expected standard output of the last block. */
  readonly prints?: RegExp
}

const SHOTS = 'runs:\n  - { name: fox, kind: image, prompt: a fox, output: assets/fox.png }\n'

const ONE_RUN = 'rushes run image "a fox" --no-wait'

const FINISHED_RUN = `${ONE_RUN} | rushes wait - > urls.txt; rushes list | cut -f1`

const AN_ACCOUNT =
  'rushes admin account create acme --balance 100\nrushes admin key create --account acme --name ci'

/** The file of a model with the parameters that docs/models.md uses. */
const documentOf = (name: string): string =>
  `name: ${name}\nkind: image\ninput: { steps: { type: integer, maximum: 50 }, seed: { type: integer }, region: { type: object } }\n`

const GIVEN: Readonly<Record<string, Given>> = {
  'README.md: One minute': {
    isNewUser: true,
    prints: /exit 2\nexit 11\nlate\.png\n(run_\S+\tsucceeded\t.*\n){4}$/,
  },
  'README.md: Use a service': { isNewUser: true },
  'docs/agents.md: Agents': { prints: /^fox\.mp4$|"fox\.mp4"/m },
  'docs/batch.md: Batches': { files: { 'shots.yaml': SHOTS } },
  'docs/batch.md: What it costs': { files: { 'shots.yaml': SHOTS } },
  'docs/batch.md: Matrix': {
    files: {
      'icons.yaml':
        'runs: [{ name: "icon-{animal}-{size}", kind: image, prompt: "{animal}", matrix: { animal: [fox], size: [1] } }]\n',
    },
  },
  'docs/engine-types.md: command': {
    files: { 'sketch.png': ONE_PIXEL_PNG },
    asks: 'rushes run image "a fox" -i sketch.png -o made.png && cmp sketch.png made.png',
  },
  'docs/models.md': {
    files: { 'still-1.yaml': documentOf('acme/still-1') },
    before: 'rushes models add still-1.yaml',
  },
  'docs/commands.md: rushes models': {
    files: { 'still-2.yaml': documentOf('acme/still-2') },
    before: 'rushes models add still-2.yaml',
  },
  'docs/commands.md: rushes models add': {
    files: {
      'still-2.yaml': documentOf('acme/still-2'),
      'still-2.json': '{"name":"acme/still-2","kind":"image"}',
    },
  },
  'docs/commands.md: rushes models remove': {
    files: { 'models.yaml': `${documentOf('acme/still-2')}---\n${documentOf('acme/cinema-2')}` },
    before: 'rushes models add models.yaml',
  },
  'docs/commands.md: rushes run video': { files: { 'fox.png': ONE_PIXEL_PNG } },
  'docs/commands.md: rushes run image': { files: { 'sketch.png': ONE_PIXEL_PNG } },
  'docs/commands.md: rushes run model': { files: { 'input.json': '{"prompt":"a fox"}' } },
  'docs/commands.md: rushes doctor': {
    files: { 'still.yaml': 'name: acme/still-1\nkind: image\nengine: { type: preview }\n' },
    // In process, the clock of the service is not the machine's.
    before: 'true',
  },
  'docs/commands.md: rushes status': { before: ONE_RUN },
  'docs/commands.md: rushes wait': { before: ONE_RUN },
  'docs/commands.md: rushes cancel': { before: ONE_RUN },
  'docs/commands.md: rushes download': { before: FINISHED_RUN },
  'docs/commands.md: rushes batch': { files: { 'shots.yaml': SHOTS } },
  'docs/commands.md: rushes login': {
    isNewUser: true,
    files: { 'key.txt': 'rk_a-key\n' },
    before: 'rushes config set --profile work baseUrl https://work.example.com',
  },
  'docs/commands.md: rushes logout': { before: 'echo rk_a-key | rushes login --profile work --no-verify' },
  'docs/commands.md: rushes profile use': { before: 'rushes config set timeout 45m --profile work' },
  'docs/commands.md: rushes config list': { before: 'rushes config set timeout 45m --profile work' },
  'docs/commands.md: rushes config get': {
    before:
      'rushes config set baseUrl https://api.example.com\nrushes config set models.video acme/cinema-1 --profile work',
  },
  'docs/commands.md: rushes config set': { files: { 'prices.json': '{"acme/still-1":{"run":0.04}}' } },
  'docs/commands.md: rushes config unset': {
    before: 'rushes config set timeout 45m\nrushes config set timeout 45m --profile work',
  },
  'docs/commands.md: rushes config path': { before: 'rushes config set timeout 45m' },
  'docs/commands.md: rushes show': { before: FINISHED_RUN },
  'docs/commands.md: rushes open': { before: `${ONE_RUN}\nrushes wait --last -d` },
  'docs/commands.md: rushes gallery': { before: 'rushes run image "a fox" -d' },
  'docs/gallery.md': { before: 'rushes run image "a fox" -d' },
  'docs/commands.md: rushes forget': { before: FINISHED_RUN },
  ...Object.fromEntries(
    [
      'account list',
      'account ban',
      'account unban',
      'key create',
      'key list',
      'key log',
      'key disable',
      'key enable',
      'key set',
    ]
      .concat('credits add', 'credits list', 'backup', 'verify', 'user add')
      .map((name) => [`docs/commands.md: rushes admin ${name}`, { before: AN_ACCOUNT }]),
  ),
  ...Object.fromEntries(
    ['list', 'remove', 'link'].map((name) => [
      `docs/commands.md: rushes admin user ${name}`,
      {
        before: ['ann', 'bob'].reduce(
          (script, name) => `${script}\nrushes admin user add ${name}@example.com --account acme`,
          AN_ACCOUNT,
        ),
      },
    ]),
  ),
  'docs/service.md: Replacing a key': { before: AN_ACCOUNT },
  'docs/service.md: Users': { before: AN_ACCOUNT },
  'docs/journal.md: The journal': { before: ONE_RUN },
  'docs/troubleshooting.md: Troubleshooting': { prints: /^ok +key/m },
  'docs/scripting.md: Many runs': { files: { 'prompts.txt': 'dusk\ndawn\n' } },
}

interface Section {
  readonly title: string
  readonly scripts: readonly string[]
}

const PAGES = [
  'README.md',
  'skills/rushes/SKILL.md',
  ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'))
const SECTIONS = PAGES.flatMap(sectionsOf)
const hasJq = spawnSync('jq', ['--version']).status === 0
const isHere = (script: string): boolean =>
  !NOT_HERE.some(({ begins }) => script.startsWith(begins)) && (hasJq || !/\bjq\b/.test(script))

const pageOf = (title: string): string => title.split(':')[0] ?? ''

/** A code block that runs, with its setup. */
export interface Example extends Given {
  readonly title: string
  readonly scripts: readonly string[]
}

/** Without the lines that do not run here. Each service in the foreground is a script. */
const runnable = (script: string): readonly string[] =>
  script
    .split('\n')
    .filter((line) => !Object.keys(LINES_NOT_HERE).some((begins) => line.startsWith(begins)))
    .join('\n')
    .split(/\n(?=rushes serve\b.*\n)/)
    .filter((part) => part.trim() !== '')

export const EXAMPLES: readonly Example[] = SECTIONS.map(({ title, scripts }) => ({
  ...(GIVEN[title] ?? GIVEN[pageOf(title)]),
  title,
  scripts: scripts.filter(isHere).flatMap(runnable),
})).filter(({ scripts }) => scripts.length > 0)

/** Returns the words of each line. Undefined if a line needs a shell, or is not a command of `rushes`. */
export function plainLines(script: string): readonly (readonly string[])[] | undefined {
  const lines: string[][] = []
  for (const line of script.replaceAll('\\\n', ' ').split('\n')) {
    if (/^\s*(#|$)/.test(line)) continue
    const matched = /^rushes((?: +(?:'[^']*'|"[^"$`\\]*"|[\w.,:/@%+=-])+)*) *(?: #.*)?$/.exec(line)
    if (matched === null) return undefined
    const words = matched[1]?.match(/(?:'[^']*'|"[^"]*"|[^ '"])+/g) ?? []
    lines.push(words.map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2')))
  }
  // In process, neither a service process nor the built renderer exists.
  return lines.some((words) => words[0] === 'serve' || words.includes('--local')) ? undefined : lines
}

export const isPlain = ({ scripts, before = '', isNewUser = false, prints }: Example): boolean =>
  !isNewUser &&
  prints === undefined &&
  [...scripts, before].every((script) => plainLines(script) !== undefined)

/** Returns entries of the lists above that match no example. */
export function uselessEntries(): readonly string[] {
  const scripts = SECTIONS.flatMap((section) => section.scripts)
  const titles = new Set(SECTIONS.flatMap(({ title }) => [title, pageOf(title)]))
  return [
    ...NOT_HERE.map(({ begins }) => begins).filter(
      (begins) => !scripts.some((script) => script.startsWith(begins)),
    ),
    ...Object.keys(LINES_NOT_HERE).filter(
      (begins) => !scripts.some((script) => `\n${script}`.includes(`\n${begins}`)),
    ),
    ...Object.keys(GIVEN).filter((title) => !titles.has(title)),
  ]
}

/** Id of the run in all examples. */
export const EXAMPLE_ID = 'run_7k2m9x'

/** Replaces the id in the script by one in the text printed before, if any. */
export function withId(script: string, printed: string): string {
  const [id = EXAMPLE_ID] = /^run_\w+$/m.exec(printed) ?? []
  return script.replaceAll(EXAMPLE_ID, id)
}

/** Returns the `sh` and `bash` blocks by heading. */
function sectionsOf(page: string): readonly Section[] {
  const sections = new Map<string, string[]>()
  let title = page
  for (const [, heading, language, script = ''] of readFileSync(join(ROOT, page), 'utf8').matchAll(
    /^#+ (.*)$|^```(\w*)\n([\s\S]*?)^```$/gm,
  )) {
    if (heading !== undefined) title = `${page}: ${heading}`
    else if (language === 'sh' || language === 'bash')
      sections.set(title, [...(sections.get(title) ?? []), script])
  }
  return [...sections].map(([each, scripts]) => ({ title: each, scripts }))
}
