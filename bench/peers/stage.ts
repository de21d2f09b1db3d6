/** A service of its own for each measurement, so that no one inherits another's requests, journal or runs. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Adapter, startAdapter } from './adapter.js'
import { RUSHES, type Tool } from './tools.js'

const LIMIT_MS = 120_000

/** Takes as long as the prompt says, "takes 2.5 s", and fails when the prompt wants it to. */
const ENGINE = `prompt=$(jq -r .prompt)
sleep "$(printf %s "$prompt" | sed -n 's/.*takes \\([0-9.]*\\) s.*/\\1/p')"
case $prompt in *fails*) echo 'out of paint' >&2; exit 1;; esac
cp "$PICTURE" "$RUSHES_OUTPUT_DIR/1.jpg"`

export interface Ended {
  readonly seconds: number
  /** The exit code, or the signal's name. */
  readonly code: string
  readonly said: string
}

export interface Stage {
  readonly counts: Adapter['counts']
  readonly folder: string
  readonly home: string
  /** Pictures that are there and not empty. */
  files(): number
  perform(command: readonly string[], whileRunning?: (child: ChildProcess) => Promise<void>): Promise<Ended>
}

export async function onStage<Result>(
  tool: Tool,
  settings: { readonly losesAnswers?: number; readonly key?: string },
  play: (stage: Stage) => Promise<Result>,
): Promise<Result> {
  const root = mkdtempSync(join(tmpdir(), 'rushes-peers-'))
  const [folder, home] = [join(root, 'work'), join(root, 'home')]
  for (const each of [folder, home]) mkdirSync(each)
  const models = join(root, 'models.json')
  const model = { name: 'acme/still-1', kind: 'image', engine: { type: 'command', command: ENGINE } }
  writeFileSync(models, JSON.stringify(model))
  const service = spawn(
    process.execPath,
    [RUSHES, 'serve', '--port', '0', '--json', '--concurrency', '20', '--models', models],
    {
      env: { PATH: process.env.PATH, HOME: join(root, 'service'), PICTURE: resolve('docs/previews.jpg') },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const [announced] = await once(service.stdout, 'data')
  const { url, api_key: good } = JSON.parse(String(announced))
  const adapter = await startAdapter(url, settings.losesAnswers)
  const [base, key] = [`${adapter.url}${tool.path}`, settings.key ?? good]
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    BASE_URL: base,
    API_KEY: key,
    RUSHES_BASE_URL: base,
    RUSHES_API_KEY: key,
    RUSHES_IMAGE_MODEL: 'acme/still-1',
    ...tool.env,
  }
  try {
    return await play({
      counts: adapter.counts,
      folder,
      home,
      files: () =>
        readdirSync(folder).filter((name) => name.startsWith('fox-') && statSync(join(folder, name)).size > 0)
          .length,
      async perform([program = '', ...words], whileRunning) {
        const started = performance.now()
        const child = spawn(program, words, {
          cwd: folder,
          env,
          detached: true,
          stdio: ['ignore', 'pipe', 'pipe'],
        })
        let said = ''
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', (text) => {
            said += text
          })
        const limit = setTimeout(() => endGroup(child), LIMIT_MS)
        const [[code, signal]] = await Promise.all([once(child, 'close'), whileRunning?.(child)])
        clearTimeout(limit)
        return { seconds: (performance.now() - started) / 1_000, code: String(code ?? signal), said }
      },
    })
  } finally {
    await adapter.end()
    service.kill('SIGTERM')
    await once(service, 'exit')
    rmSync(root, { recursive: true, force: true })
  }
}

/** The process and all that it started, as a machine that is switched off would. */
export function endGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL')
}
