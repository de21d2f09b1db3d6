/**
 * Runs the `sh` and `bash` blocks of the docs as they are written, in strict mode, against a real service. Blocks below one heading share a home
 * and a folder, and run in order; `run_7k2m9x` is a real run.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import {
  bash,
  createPlace,
  ONE_PIXEL_PNG,
  type Place,
  personAt,
  type Service,
  serve,
} from './support/index.js'
import { pathsBelow, read } from './support/project.js'

/** Lines that do not run here, with the reason. */
const SKIPPED: readonly (readonly [begins: string, why: string])[] = [
  ['npm ', 'installs'],
  ['export AWS_REGION=', 'needs a bucket'],
  ['rushes serve --storage', 'needs a bucket'],
  ['rushes run image --local --engine ', 'needs a server of models: service/engines/docs-commands.test.ts'],
  ['rushes run video --local --engine ', 'needs a server of models'],
  ['rushes models import ', 'needs fal or Replicate: cli/imports/import.test.ts'],
  ['rushes run image --local --model fal-ai/', 'needs fal'],
  ['rushes admin run ', 'needs a run of another kind: service/jobs.test.ts'],
  ['rushes batch examples/', 'needs a copy of the examples: examples.test.ts'],
  [
    'rushes run video -i start.png --end-image-url ',
    'needs a model with these parameters: cli/media.test.ts',
  ],
  ['rushes cancel run_7k2m9x ', 'needs an unfinished run: service/cancel.test.ts'],
]

/** One story, in one folder. */
const TUTORIAL = 'docs/tutorial.md'

/** Pages and headings without a configured service. */
const LOCAL = [TUTORIAL, 'README.md: One minute']
const NO_SERVICE = {
  RUSHES_BASE_URL: undefined,
  RUSHES_API_KEY: undefined,
  RUSHES_IMAGE_MODEL: undefined,
  RUSHES_VIDEO_MODEL: undefined,
}

/** Scripts that run before the blocks below a heading, or of a page. */
const BEFORE: Readonly<Record<string, string>> = {
  // Key 1 is that of the first start.
  'docs/service.md: Accounts and keys': 'serve',
  'docs/operations.md: Backup and restore': 'serve --data ./service\nmkdir -p service/files',
  'docs/models.md: Models': 'rushes models add still-1.yaml',
  'docs/models.md: Parameters and flags': 'rushes models add still-1.yaml',
}

/** The standard output of the blocks below a heading. */
const PRINTS: Readonly<Record<string, RegExp>> = {
  'README.md: One minute': /exit 2\nexit 11\nlate\.png\n(run_\S+\tsucceeded\t.*\n){4}$/,
  'docs/agents.md: Agents': /"fox\.mp4"/,
}

const AN_ACCOUNT =
  'rushes admin account create acme --balance 100 && rushes admin key create --account acme --name ci'
const RUN = 'rushes run image "a fox" -d'

/** A service in the foreground is stopped as soon as it listens. */
const SHELL = `set -euo pipefail
serve() {
  rushes serve --port 0 "$@" > serve.out &
  until [ -s serve.out ]; do kill -0 $!; sleep 0.05; done
  kill $! && wait $!
}`

/** Other programs, which may not be installed. */
const STAND_INS: Readonly<Record<string, string>> = {
  npx: 'exec "$@"',
  fortune: 'echo a fox in a library',
  // Its last argument is the result.
  magick: 'for result; do :; done; cat > "$result"; head -c 4 "$result" | grep -q PNG',
}

const FILM = 'printf "\\0\\0\\0\\030ftypisom\\0\\0\\002\\0isomiso2" > "$RUSHES_OUTPUT_DIR/film.mp4"'
const PICTURE = `echo ${ONE_PIXEL_PNG.toString('base64')} | base64 -d > "$RUSHES_OUTPUT_DIR/a.png"`

/** Files that the examples name. `models.yaml` has the models of `--local`, which render at once. */
const FILES: Readonly<Record<string, string | Uint8Array>> = {
  'sketch.png': ONE_PIXEL_PNG,
  'prompts.txt': 'dusk\ndawn\n',
  'shots.yaml': 'runs:\n  - { name: fox, kind: image, prompt: a fox, output: assets/fox.png }\n',
  'icons.yaml':
    'runs: [{ name: "icon-{animal}-{size}", kind: image, prompt: "{animal}", matrix: { animal: [fox], size: [1] } }]\n',
  'still-1.yaml':
    'name: acme/still-1\nkind: image\ninput: { steps: { type: integer }, seed: { type: integer }, region: { type: object } }\n',
  'models/flux.yaml': `name: acme/flux\nkind: image\ninput: { steps: { type: integer } }\nengine: { type: command, command: '${PICTURE}' }\n`,
  'models.yaml': `name: acme/picture\nkind: image\nengine: { type: command, command: '${PICTURE}' }
---\nname: acme/film\nkind: video\nengine: { type: command, command: '${FILM}' }\n`,
}

const hasJq = spawnSync('jq', ['--version']).status === 0

interface Section {
  readonly title: string
  readonly scripts: readonly string[]
}

const SECTIONS = ['README.md', ...pathsBelow('docs', /\.md$/), ...pathsBelow('skills', /\.md$/)]
  .flatMap(sectionsOf)
  .filter(({ scripts }) =>
    scripts.some((script) => runnable(script) !== '' && (hasJq || !script.includes('jq '))),
  )

function sectionsOf(page: string): readonly Section[] {
  const sections = new Map<string, string[]>()
  let title = page
  for (const [, heading, language, script = ''] of read(page).matchAll(
    /^#+ (.*)$|^```(\w*)\n([\s\S]*?)^```$/gm,
  ))
    if (heading !== undefined) title = page === TUTORIAL ? page : `${page}: ${heading}`
    else if (language === 'sh' || language === 'bash')
      sections.set(title, [...(sections.get(title) ?? []), script])
  return [...sections].map(([each, scripts]) => ({ title: each, scripts }))
}

function runnable(script: string): string {
  return script
    .split('\n')
    .filter((line) => !SKIPPED.some(([begins]) => line.startsWith(begins)))
    .join('\n')
    .replace(/^rushes serve (?!.*&$)/gm, 'serve ')
    .replace(/^rushes serve$/gm, 'serve')
    .trim()
}

let service: Service
beforeAll(async () => {
  const place = createPlace()
  const models = join(place.folder, 'served.yaml')
  writeFileSync(
    models,
    `name: acme/still-1\nkind: image\nprice: { run: 1 }\nengine: { type: command, command: '${PICTURE}' }
---\nname: acme/cinema-1\nkind: video\nprice: { run: 5 }\nengine: { type: command, command: '${FILM}' }\n`,
  )
  service = await serve(place, ['--models', models])
})

test.concurrent.each(SECTIONS.map((section) => [section.title, section] as const))(
  'the commands of the docs run: %s',
  async (title, { scripts }) => {
    const user = await createUser()
    const isLocal = LOCAL.includes(title)
    const place = isLocal ? user.with(NO_SERVICE) : user
    const text = scripts.map(runnable).join('\n')
    const before = [
      BEFORE[title] ?? '',
      /rushes admin (?!account create)/.test(text) && !text.includes('admin account create')
        ? AN_ACCOUNT
        : '',
      !isLocal && /--last|run_7k2m9x|gallery|show/.test(text) ? RUN : '',
    ]
    const { stdout: printed } = await run(place, before.join('\n'))
    const [id = ''] = /\brun_\w+/.exec(printed) ?? []
    for (const script of scripts.map(runnable)) {
      const ended = await run(place, script.replaceAll('run_7k2m9x', id))
      expect(ended.code, `${script}\n${ended.stdout}\n${ended.stderr}`).toBe(0)
      expect(ended.stderr).not.toMatch(/^warning: /m)
      if (script === scripts.map(runnable).at(-1)) expect(ended.stdout).toMatch(PRINTS[title] ?? /^/)
    }
  },
)

test('every entry of the list above matches a line of the docs', () => {
  const text = [...pathsBelow('docs', /\.md$/), 'README.md'].map(read).join('\n')
  expect(SKIPPED.filter(([begins]) => !text.includes(`\n${begins}`))).toEqual([])
})

/** A user with a key, a home and a folder, so that sections share no rate limit. */
async function createUser(): Promise<Place> {
  const place = await personAt(service)
  const bin = join(place.home, 'bin')
  for (const folder of [bin, join(place.folder, 'models'), join(place.home, 'config')]) mkdirSync(folder)
  const program = join(place.home, '..', 'bin', 'rushes')
  // Types the key at `rushes login`.
  const login = `[ "$1" != login ] || { printf '%s\\n' "$RUSHES_API_KEY" | ${program} "$@"; exit; }`
  for (const [name, text] of Object.entries({ ...STAND_INS, rushes: `${login}\nexec ${program} "$@"` })) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  for (const [name, bytes] of Object.entries(FILES)) writeFileSync(join(place.folder, name), bytes)
  const config = { profiles: { default: { local: { models: join(place.folder, 'models.yaml') } } } }
  writeFileSync(join(place.home, 'config', 'config.json'), JSON.stringify(config))
  return place.with({
    PATH: `${bin}:${place.env.PATH}`,
    RUSHES_CONFIG_DIR: join(place.home, 'config'),
    RUSHES_IMAGE_MODEL: 'acme/still-1',
    RUSHES_VIDEO_MODEL: 'acme/cinema-1',
  })
}

const run = (place: Place, script: string) =>
  bash(place, `${SHELL}\n${script.replaceAll('https://api.example.com', service.url)}`)
