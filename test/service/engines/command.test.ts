/** Commands as engines: real shells, a real clock, nothing drawn. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/host/clock.js'
import { createCommandEngine } from '../../../src/service/engines/command/index.js'
import { RendererCrashed, type RenderJob } from '../../../src/service/engines/engine.js'
import { built } from '../../support/built.js'
import { createManualClock, ONE_PIXEL_PNG, temporaryFolder, until } from '../../support/index.js'
import { processExists } from '../../support/process-exists.js'

let script: string
beforeAll(async () => {
  script = await built(new URL('./command-process.ts', import.meta.url))
})

const GIF = Buffer.from('R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==', 'base64')

const job = (more: Partial<RenderJob> = {}): RenderJob => ({
  kind: 'image',
  run: { id: 'run_7', model: 'acme/my-model' },
  input: { prompt: 'a fox; rm -rf "$HOME"', quality: 'basic' },
  folder: mkdtempSync(join(temporaryFolder(), 'run-')),
  references: [],
  signal: new AbortController().signal,
  ...more,
})

interface EngineOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly clock?: Clock
}

const engine = (command: string, { env = {}, clock = systemClock }: EngineOptions = {}) =>
  createCommandEngine({ command, env: { PATH: process.env.PATH, ...env }, clock })

/** A file in a folder of its own, as the service saves a reference. */
function referenceOf(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), '1')
  writeFileSync(path, bytes)
  return path
}

const text = (of: RenderJob, name: string) => readFileSync(join(of.folder, name), 'utf8')

test('the input comes on standard input, and what it says on standard output goes nowhere', async () => {
  const of = job()
  const files = await engine('cat > "$RUSHES_OUTPUT_DIR/in.json"; echo chatter').render(of)
  expect(files).toEqual([{ name: 'in.json', contentType: 'application/octet-stream' }])
  expect(JSON.parse(text(of, 'in.json'))).toEqual({ ...of.input, image_files: [] })
})

test('references are files, in order, and a request cannot name files of its own', async () => {
  const of = job({
    input: { prompt: 'x', image_urls: ['sha256:1', 'http://x/y'], image_files: ['/etc/passwd'] },
    references: [referenceOf(ONE_PIXEL_PNG), referenceOf(GIF)],
  })
  await engine(
    'cat > "$RUSHES_OUTPUT_DIR/in.json"; cp "$RUSHES_INPUT_DIR/01.png" "$RUSHES_OUTPUT_DIR/copy"',
  ).render(of)
  const inputs = `${of.folder}-input`
  expect(JSON.parse(text(of, 'in.json')).image_files).toEqual([
    join(inputs, '01.png'),
    join(inputs, '02.gif'),
  ])
  expect(readFileSync(join(of.folder, 'copy'))).toEqual(ONE_PIXEL_PNG)
  expect(existsSync(inputs)).toBe(false)
})

test('a reference that could not be had fails the run before anything is started', async () => {
  const of = job({ references: [referenceOf(ONE_PIXEL_PNG), undefined] })
  await expect(engine('touch "$RUSHES_OUTPUT_DIR/x"').render(of)).rejects.toThrow(
    'Reference image 2 could not be read.',
  )
  expect(readdirSync(of.folder)).toEqual([])
})

test('the environment says what the run is, and has nothing of the service', async () => {
  const of = job()
  const env = { RUSHES_API_KEY: 'rk_secret', COPY: 'rk_secret', PGHOST: 'db', CUDA_VISIBLE_DEVICES: '1' }
  await engine('env > "$RUSHES_OUTPUT_DIR/env"', { env }).render(of)
  const lines = text(of, 'env').split('\n')
  expect(lines).toEqual(
    expect.arrayContaining([
      `RUSHES_OUTPUT_DIR=${of.folder}`,
      `RUSHES_INPUT_DIR=${of.folder}-input`,
      'RUSHES_RUN_ID=run_7',
      'RUSHES_MODEL=acme/my-model',
      'RUSHES_KIND=image',
      'CUDA_VISIBLE_DEVICES=1',
    ]),
  )
  expect(lines.filter((line) => /^(RUSHES_API|COPY|PG)/.test(line))).toEqual([])
})

test('outputs are plain files with something in them, typed by their bytes, in the order of their names', async () => {
  const of = job()
  const from = temporaryFolder()
  writeFileSync(join(from, 'png'), ONE_PIXEL_PNG)
  writeFileSync(join(from, 'gif'), GIF)
  const files = await engine(
    `cd "$RUSHES_OUTPUT_DIR"
     cp '${from}/png' f-10.jpg; cp '${from}/gif' f-2.png; chmod 0 f-2.png
     echo '<script>alert(1)</script>' > page.html; echo '<svg xmlns="http://www.w3.org/2000/svg"/>' > a.svg
     : > empty; mkdir folder; echo x > folder/inside; ln -s /etc/passwd link; echo x > .hidden; mkfifo pipe`,
  ).render(of)
  expect(files).toEqual([
    { name: 'a.svg', contentType: 'application/octet-stream' },
    { name: 'f-2.png', contentType: 'image/gif' },
    { name: 'f-10.jpg', contentType: 'image/png' },
    { name: 'page.html', contentType: 'application/octet-stream' },
  ])
  for (const { name } of files) expect(statSync(join(of.folder, name)).mode & 0o777).toBe(0o600)
})

test.each([
  ['echo "no GPU" >&2; exit 3', /^The engine ended with exit code 3: no GPU$/],
  ['exit 3', /^The engine ended with exit code 3\.$/],
  ['no-such-command', /exit code 127.*not found/],
  ['echo "strange" >&2', /^The engine wrote no output file: strange$/],
  ['printf "10%%\\r20%%\\r\\033[31mred\\033[0m\\n\\007" >&2; exit 1', /: red$/],
  ['seq 100000 >&2; exit 1', /: 9\d{4}\n[\s\S]*\n100000$/],
  ['cp /bin/sh "$RUSHES_OUTPUT_DIR/half.png"; exit 1', /exit code 1\.$/],
])('%s: fails with the last words', async (command, words) => {
  const of = job()
  const failed = engine(command).render(of)
  await expect(failed).rejects.toThrow(words)
  await expect(failed).rejects.not.toBeInstanceOf(RendererCrashed)
  await failed.catch((error: Error) => expect(error.message.length).toBeLessThan(2_100))
})

test.each(['kill -KILL $$', 'kill -KILL 0', 'sh -c "kill -SEGV \\$\\$"'])(
  'ended by a signal (%s) is a death, to be tried again',
  async (command) => {
    await expect(engine(`echo hm >&2; ${command}`).render(job())).rejects.toBeInstanceOf(RendererCrashed)
  },
)

test('it is ended with all that it started', async () => {
  const of = job()
  const stop = new AbortController()
  const pids = () =>
    ['outer', 'inner'].flatMap((name) => {
      const path = join(of.folder, name)
      return existsSync(path) && readFileSync(path, 'utf8').endsWith('\n') ? [Number(text(of, name))] : []
    })
  // The time after which the engine would be killed never comes. What polls for the end of the group really sleeps.
  const rendering = engine(
    'cd "$RUSHES_OUTPUT_DIR"; echo $$ > outer; (sh -c "echo \\$\\$ > inner; sleep 60; :") & wait',
    { clock: { ...systemClock, alarm: createManualClock().alarm } },
  ).render({ ...of, signal: stop.signal })
  await until('two processes', () => pids().length === 2)
  const found = pids()
  stop.abort(new Error('no longer wanted'))
  await expect(rendering).rejects.toThrow('no longer wanted')
  expect(found.map(processExists)).toEqual([false, false])
})

test('what does not heed SIGTERM gets SIGKILL', async () => {
  const of = job()
  const stop = new AbortController()
  const clock = createManualClock()
  const rendering = engine(`trap '' TERM; echo $$ > "$RUSHES_OUTPUT_DIR/pid"; while :; do sleep 1; done`, {
    clock,
  }).render({ ...of, signal: stop.signal })
  await until('its pid', () => existsSync(join(of.folder, 'pid')) && text(of, 'pid').endsWith('\n'))
  const pid = Number(text(of, 'pid'))
  stop.abort(new Error('enough'))
  await expect(clock.runUntil(rendering)).rejects.toThrow('enough')
  await until(`the end of ${pid}`, () => !processExists(pid))
})

test('what it leaves in the background is ended before its outputs are looked at', async () => {
  const of = job()
  const files = await engine(
    'cd "$RUSHES_OUTPUT_DIR"; (sleep 60; echo late > late) & echo $! > pid; echo now > now',
  ).render(of)
  expect(files.map(({ name }) => name)).toEqual(['now', 'pid'])
  expect(processExists(Number(text(of, 'pid')))).toBe(false)
})

test('a command that reads nothing of a large input is no error', async () => {
  const of = job({ input: { prompt: 'x'.repeat(3_000_000) } })
  expect(await engine('echo x > "$RUSHES_OUTPUT_DIR/x"').render(of)).toHaveLength(1)
})

test.runIf(process.platform === 'linux')('no engine outlives a service that was killed', async () => {
  const folder = temporaryFolder()
  const service = spawn(process.execPath, [script, folder], { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void service.kill('SIGKILL'))
  const path = join(folder, 'pid')
  await until('its pid', () => existsSync(path) && readFileSync(path, 'utf8').endsWith('\n'))
  const pid = Number(readFileSync(path, 'utf8'))
  expect(processExists(pid)).toBe(true)
  service.kill('SIGKILL')
  await until(`the end of ${pid}`, () => !processExists(pid))
})
