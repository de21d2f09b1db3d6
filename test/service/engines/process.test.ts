import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { createProcessEngine } from '../../../src/service/engines/process.js'
import { RendererCrashed, TooMuchMemory } from '../../../src/service/engines/renderer-crashed.js'
import { LOCAL_MODELS } from '../../../src/service/local-models.js'
import { built } from '../../support/built.js'
import { createManualClock } from '../../support/clock.js'
import { ask, createTestService, ended, temporaryFolder } from '../../support/service.js'

let script: string
beforeAll(async () => {
  script = await built(new URL('./odd-renderer.ts', import.meta.url))
})

function createEngine(options: Partial<Parameters<typeof createProcessEngine>[0]> = {}) {
  const engine = createProcessEngine({ script, ...options })
  onTestFinished(() => engine.close())
  return engine
}

const job = (prompt: string, more: Partial<RenderJob> = {}): RenderJob => ({
  kind: 'image',
  input: { prompt },
  folder: temporaryFolder(),
  references: [],
  signal: new AbortController().signal,
  ...more,
})

const made = (of: RenderJob) => readFileSync(join(of.folder, 'file'), 'utf8')

function createGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

const exists = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a process is kept for the next job, and a second one started only beside it', async () => {
  const engine = createEngine()
  const jobs = [job('pid'), job('pid'), job('pid'), job('pid')] as const
  expect(await engine.render(jobs[0])).toEqual([{ name: 'file', contentType: 'text/plain' }])
  await engine.render(jobs[1])
  expect(made(jobs[1])).toBe(made(jobs[0]))
  await Promise.all([engine.render(jobs[2]), engine.render(jobs[3])])
  expect(made(jobs[2])).not.toBe(made(jobs[3]))
})

test('bytes and progress cross the border', async () => {
  const engine = createEngine()
  const told: number[] = []
  const many = job('references', { references: [new Uint8Array(3_000_000), undefined, Buffer.from('ab')] })
  await engine.render(many)
  expect(made(many)).toBe('[3000000,null,2]')
  await engine.render(job('progress', { onProgress: (fraction) => told.push(fraction) }))
  expect(told).toEqual([0.25, 0.5, 1])
})

test.each(['RUSHES_API_KEY_FILE', 'RUSHES_DATABASE_URL', 'PGPASSWORD', 'AWS_SECRET_ACCESS_KEY'])(
  'the renderer is not told %s',
  async (name) => {
    process.env[name] = 'secret'
    onTestFinished(() => void delete process.env[name])
    const asked = job('env')
    await createEngine().render(asked)
    expect(made(asked)).not.toContain(name)
  },
)

test('an error of the engine is the run’s failure, and the process lives on', async () => {
  const engine = createEngine()
  const before = job('pid')
  await engine.render(before)
  const failed = engine.render(job('error'))
  await expect(failed).rejects.toThrow('the paint has run out')
  await expect(failed).rejects.not.toBeInstanceOf(RendererCrashed)
  const after = job('pid')
  await engine.render(after)
  expect(made(after)).toBe(made(before))
})

test.each([
  ['crash', /SIGABRT.*out of canvas/],
  ['leave', /exit code 7/],
  ['orphan', /exit code 7/],
])('a process that dies (%s) is told apart, and the next job gets a new one', async (prompt, words) => {
  const engine = createEngine()
  const died = engine.render(job(prompt))
  await expect(died).rejects.toBeInstanceOf(RendererCrashed)
  await expect(died).rejects.toThrow(words)
  await engine.render(job('pid'))
})

test('a process that takes too much memory is ended, which is no crash, and the next job gets a new one', async () => {
  const engine = createEngine()
  const greedy = job('memory')
  const ended = engine.render(greedy)
  await expect(ended).rejects.toBeInstanceOf(TooMuchMemory)
  await expect(ended).rejects.toThrow('The renderer needed more than 480 MiB of memory.')
  expect(exists(Number(made(greedy)))).toBe(false)
  await engine.render(job('pid'))
})

test('a process that keeps much memory after its job is not given another one', async () => {
  const engine = createEngine()
  const [large, next] = [job('large'), job('pid')]
  await engine.render(large)
  await engine.render(next)
  expect(made(next)).not.toBe(made(large))
})

test('too much memory fails the run at the first attempt, and the service goes on', async () => {
  const service = await createTestService({ engine: createEngine() })
  const create = async (prompt: string) => {
    const body = { model: LOCAL_MODELS.image, input: { prompt } }
    return (await ask(service, 'POST', '/api/v1/runs', body)).body.id
  }
  expect(await ended(service, await create('memory'))).toMatchObject({
    status: 'failed',
    error: { code: 'render_failed', message: 'The renderer needed more than 480 MiB of memory.' },
  })
  expect((await ended(service, await create('pid'))).status).toBe('succeeded')
  expect(service.complaints).toEqual([])
})

test('a script that is not there is a death with a reason', async () => {
  const engine = createEngine({ script: '/nowhere/renderer.js' })
  await expect(engine.render(job('pid'))).rejects.toThrow(/renderer crashed.*Cannot find module/)
})

test('an aborted job rejects with the reason, leaves no file, and its process is gone', async () => {
  const engine = createEngine()
  const stop = new AbortController()
  const begun = createGate()
  const hanging = job('hang', { signal: stop.signal, onProgress: () => begun.open() })
  const rendering = expect(engine.render(hanging)).rejects.toThrow('no longer wanted')
  await begun.opened
  const pid = Number(made(hanging))
  stop.abort(new Error('no longer wanted'))
  await rendering
  expect(exists(pid)).toBe(false)
  expect(await readdir(hanging.folder)).toEqual([])
})

test('a process that will not end is ended by force', async () => {
  const clock = createManualClock()
  const engine = createEngine({ clock })
  const stop = new AbortController()
  const begun = createGate()
  const stubborn = job('stubborn', { signal: stop.signal, onProgress: () => begun.open() })
  const rendering = expect(engine.render(stubborn)).rejects.toThrow('enough')
  await begun.opened
  stop.abort(new Error('enough'))
  await clock.advance(999)
  expect(exists(Number(made(stubborn)))).toBe(true)
  await clock.advance(1)
  await rendering
})

test('an idle process is ended after a while, and every process when the engine closes', async () => {
  const clock = createManualClock()
  const engine = createEngine({ clock })
  const [first, second] = [job('pid'), job('pid')]
  await engine.render(first)
  await clock.advance(60_000)
  await engine.render(second)
  expect(made(second)).not.toBe(made(first))
  await engine.close()
  expect(exists(Number(made(second)))).toBe(false)
  await expect(engine.render(job('pid'))).rejects.toBeInstanceOf(RendererCrashed)
})
