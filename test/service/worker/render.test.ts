/** One render, with commands that do with their folders as they like. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../src/host/clock.js'
import { createCommandEngine } from '../../../src/service/engines/command/index.js'
import { type Engine, JobDetached } from '../../../src/service/engines/engine.js'
import { type PutOptions, StorageUnavailable } from '../../../src/service/files/contract.js'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { PREVIEW_DOCUMENTS } from '../../../src/service/models/served-model.js'
import { failureOf } from '../../../src/service/worker/attempt.js'
import { render } from '../../../src/service/worker/render.js'
import { createInstantEngine, temporaryFolder } from '../../support/index.js'
import { storedRun } from '../../support/runs.js'

const RUN = storedRun()

const listed = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as string[]).sort().map((name) => {
    const { mode, nlink, size } = statSync(join(folder, name))
    return { name, mode, nlink, size }
  })

/**
 * Renders with a command; why the run failed, and what was published. `OUTSIDE` is a folder whose content must stay as it is,
 * `ELSEWHERE` one beside it for the command.
 */
async function renderWith(engineOf: (env: NodeJS.ProcessEnv) => Engine) {
  const root = temporaryFolder()
  const [outside, elsewhere, outputs] = ['outside', 'elsewhere', 'outputs'].map((name) =>
    join(root, name),
  ) as [string, string, string]
  for (const folder of [outside, elsewhere, outputs]) mkdirSync(folder)
  mkdirSync(join(outside, 'sub'))
  for (const name of ['sentinel.png', '.hidden', 'sub/deep.png'])
    writeFileSync(join(outside, name), 'precious', { mode: 0o644 })
  const before = listed(outside)
  onTestFinished(() => expect(listed(outside)).toEqual(before))
  const errors: unknown[] = []
  const env = { PATH: process.env.PATH, OUTSIDE: outside, ELSEWHERE: elsewhere }
  const rendering = render(
    RUN,
    [],
    {
      engine: engineOf(env),
      schema: PREVIEW_DOCUMENTS.image.input,
      clock: systemClock,
      workFolder: join(root, 'work'),
      outputs: createLocalFiles(outputs),
      saveJob: async () => {},
      onProgress() {},
      onPosition() {},

      onError: (error) => errors.push(error),
    },
    {
      timeoutMs: 60_000,
      reason: () => new Error('too slow'),
      clock: systemClock,
      signal: new AbortController().signal,
    },
  )
  const failure = await rendering.then(
    () => undefined,
    (error) => failureOf(error),
  )
  const published = (
    readdirSync(outputs, { recursive: true, withFileTypes: true }) as import('node:fs').Dirent[]
  )
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return { failure, published, errors, elsewhere, left: readdirSync(join(root, 'work')) }
}

const withCommand = (command: string) =>
  renderWith((env) => createCommandEngine({ command, env, clock: systemClock }))

test.each([
  ['rmdir "$RUSHES_OUTPUT_DIR" && ln -s "$OUTSIDE" "$RUSHES_OUTPUT_DIR"', 'a link'],
  [
    'echo x > "$RUSHES_OUTPUT_DIR/x.png"; mv "$RUSHES_OUTPUT_DIR" "$ELSEWHERE/out"; ln -s "$ELSEWHERE/out" "$RUSHES_OUTPUT_DIR"',
    'a link',
  ],
  [
    'rm -r "$RUSHES_OUTPUT_DIR"; mkdir "$RUSHES_OUTPUT_DIR"; echo x > "$RUSHES_OUTPUT_DIR/x.png"',
    'another folder',
  ],
  ['rmdir "$RUSHES_OUTPUT_DIR"; echo x > "$RUSHES_OUTPUT_DIR"', 'a file'],
])('after %s, the run fails, and nothing is published, changed or removed', async (command, found) => {
  const { failure, published, errors, elsewhere } = await withCommand(command)
  expect(failure).toEqual({
    code: 'render_failed',
    message: `There is ${found} in place of the engine's output folder, so nothing was published. The engine must write into the folder that it gets.`,
  })
  expect(published).toEqual([])
  // The owner of the service learns where something was left.
  expect(errors).toMatchObject([{ name: 'FolderReplaced', found }])
  if (command.includes('$ELSEWHERE')) expect(readdirSync(join(elsewhere, 'out'))).toEqual(['x.png'])
})

test('a removed output folder fails the run without another error', async () => {
  const { failure, errors } = await withCommand('rmdir "$RUSHES_OUTPUT_DIR"')
  expect(failure?.message).toMatch(/^The engine's output folder is gone, so nothing was published\./)
  expect(errors).toEqual([])
})

test('a replaced input folder is not removed, and the run succeeds', async () => {
  const { failure, published, left } = await withCommand(
    'rmdir "$RUSHES_INPUT_DIR" && ln -s "$OUTSIDE" "$RUSHES_INPUT_DIR"; echo x > "$RUSHES_OUTPUT_DIR/x.png"',
  )
  expect(failure).toBeUndefined()
  expect(published).toHaveLength(1)
  expect(left).toEqual([expect.stringMatching(/^run_1-\w+-input$/)])
})

test('links and other files that are not outputs are removed without following them', async () => {
  const { failure, published, left } = await withCommand(
    `cd "$RUSHES_OUTPUT_DIR"; mkdir -p a/b; ln -s "$OUTSIDE" a/b/link; ln -s "$OUTSIDE" folder.png
     ln -s "$OUTSIDE/sentinel.png" file.png; echo x > .hidden; : > empty.png; mkfifo pipe.png; echo x > out.png`,
  )
  expect(failure).toBeUndefined()
  expect(published.map((path) => readFileSync(path, 'utf8'))).toEqual(['x\n'])
  expect(left).toEqual([])
})

test('a hard link is published as a copy that the command cannot change afterwards', async () => {
  const { published, elsewhere } = await withCommand(
    'echo first > "$ELSEWHERE/result"; chmod 644 "$ELSEWHERE/result"; ln "$ELSEWHERE/result" "$RUSHES_OUTPUT_DIR/x.png"',
  )
  const path = join(elsewhere, 'result')
  expect(statSync(path)).toMatchObject({ nlink: 1, mode: 0o100644 })
  writeFileSync(path, 'later')
  expect(published.map((each) => readFileSync(each, 'utf8'))).toEqual(['first\n'])
})

test('a file that becomes a link before it is read is not published', async () => {
  const { failure, published } = await renderWith((env) => ({
    async render(job) {
      const files = await createInstantEngine().render(job)
      const [path, target] = [join(job.folder, 'image.png'), join(env.OUTSIDE ?? '', 'sentinel.png')]
      execFileSync('ln', ['-sf', target, path])
      return files
    },
  }))
  expect(failure?.message).toBe('image.png is not a file.')
  expect(published).toEqual([])
})

test.each(['../../outside/sentinel.png', '.hidden', '..', 'a/b', ''])(
  'an output cannot be named %j',
  async (name) => {
    const { failure, published } = await renderWith(() => createInstantEngine({ files: [] }))
    expect(failure?.message).toBe('The engine wrote no output file.')
    const named = await renderWith(() => ({ render: async () => [{ name, contentType: 'image/png' }] }))
    expect(named.failure?.message).toBe('The engine gave an output an invalid name.')
    expect([...published, ...named.published]).toEqual([])
  },
)

/** Renders with a worker that stops in the engine, or while it stores a result. Returns how often it has tried to store it. */
async function renderAtStop(place: 'engine' | 'storage', answers: boolean) {
  const stop = new AbortController()
  const instant = createInstantEngine()
  const stopIn = (here: typeof place) => {
    if (place === here) stop.abort(new JobDetached('the service stops'))
  }
  let puts = 0
  const options = {
    ...{
      schema: PREVIEW_DOCUMENTS.image.input,
      clock: systemClock,
      workFolder: join(temporaryFolder(), 'work'),
    },
    ...{ saveJob: async () => {}, onProgress() {}, onPosition() {}, onError() {} },
    engine: {
      async render(job: Parameters<Engine['render']>[0]) {
        stopIn('engine')
        return await instant.render(job)
      },
    },
    outputs: {
      async put(_key: string, _source: unknown, { signal }: PutOptions = {}) {
        puts++
        stopIn('storage')
        signal?.throwIfAborted()
        if (!answers) throw new StorageUnavailable('away')
      },
      remove: async () => {},
    },
  }
  const limit = {
    timeoutMs: 60_000,
    reason: () => new Error('too slow'),
    clock: systemClock,
    signal: stop.signal,
  }
  const outputs = await render(RUN, [], options, limit).catch(() => undefined)
  return { puts, stored: outputs?.length }
}

test.each([
  ['engine', true, 1],
  ['engine', false, undefined],
  ['storage', true, 1],
  ['storage', false, undefined],
] as const)(
  'a result of a worker that stops in the %s is stored with one try, if the storage answers: %s',
  async (place, answers, stored) => {
    expect(await renderAtStop(place, answers)).toEqual({ puts: 1, stored })
  },
)
