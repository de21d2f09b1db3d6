/** What a batch has in flight, where names, hashes and ids do not lead to one run each: nothing of it is paid twice. */
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ownerOfParts } from '../../src/batch/lock/lock.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { createFamily, type Row } from '../support/family.js'
import { scripted } from '../support/index.js'

const PNG = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex')

/** Runs of prompts that begin with one letter get the same bytes. `holds`: prompts that are rendered after `release`. */
function createEngine(...holds: readonly string[]) {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return {
    release: () => release(),
    async render({
      folder,
      input,
    }: {
      readonly folder: string
      readonly input: { readonly prompt?: unknown }
    }) {
      const prompt = String(input.prompt)
      if (holds.includes(prompt)) await released
      await writeFile(join(folder, 'file'), Buffer.concat([PNG, Buffer.from(prompt[0] ?? '')]))
      return [{ name: 'file', contentType: 'image/png' }]
    },
  }
}

const row = (name: string, prompt: string, ...sources: readonly string[]): Row => ({
  ...{ name, prompt },
  ...(sources.length > 0 && { image_urls: sources.map((each) => `row:${each}`) }),
})

async function start(rows: readonly Row[], ...holds: readonly string[]) {
  const engine = createEngine(...holds)
  const family = await createFamily(rows, { engine })
  const elsewhere = { env: { RUSHES_STATE_DIR: join(family.folder, 'other') } }
  const working = () => JSON.parse(readFileSync(family.lockPath, 'utf8')).working as unknown
  return { ...family, release: engine.release, elsewhere, working }
}

it('a renamed row that waits for another one keeps `working` in the lock file while its run is in flight', async () => {
  const { run, write, created, working, elsewhere } = await start([row('a', 'A'), row('x', 'B', 'a')], 'B')
  expect((await run('--timeout 30s')).code).toBe(11)
  write([row('a', 'A again'), row('y', 'B', 'a')])
  created()
  expect([(await run('--timeout 30s')).code, created()]).toEqual([11, ['A again']])
  expect(working()).toBeDefined()
  expect([(await run([], elsewhere)).code, created()]).toEqual([13, []])
})

it('a renamed row that waits for another one finds the file that a killed batch had given its name', async () => {
  const { run, write, created, editLock, editJournal, path, lock } = await start([
    row('a', 'A'),
    row('b', 'B', 'a'),
  ])
  await run()
  const { run: id } = lock().b
  // Killed between the rename of b.png and the lock file.
  editLock((runs) => {
    delete runs.b
  })
  editJournal('UPDATE runs SET recorded = 0 WHERE id = ?', id)
  write([row('a', 'A again'), row('b', 'B', 'a')])
  created()
  const { code, stderr } = await run()
  expect({ code, stderr, created: created() }).toEqual({ code: 0, stderr, created: ['A again'] })
  expect(lock().b.run).toBe(id)
  expect(readdirSync(path('.')).filter((name) => name.endsWith('.png'))).toEqual(['a.png', 'b.png'])
})

it.each([
  ['running', 11],
  ['unconfirmed', 13],
])(
  'a row that was edited while its create is in flight pays for the edit, and not again when the edit is reverted: %s',
  async (what, code) => {
    const { run, write, created, service, release } = await start([row('a', 'A')], 'A')
    const lost: Fetch = async (request) => {
      const response = await service.counting(request)
      if (request.method !== 'POST' || what === 'running') return response
      throw new HttpFailure('read ECONNRESET', { sent: true, code: 'ECONNRESET' })
    }
    expect((await run('--timeout 30s', { fetch: lost })).code).toBe(code)
    write([row('a', 'B')])
    expect([(await run()).code, created()]).toEqual([0, ['A', 'B']])
    // Told once.
    expect((await run()).stderr).not.toContain('warning')
    release()
    write([row('a', 'A')])
    const reverted = await run()
    expect([reverted.code, created()]).toEqual([what === 'running' ? 0 : 13, []])
  },
)

it('a batch removes the part of a download that it left when it was killed, and not one of another command', async () => {
  const { run, write, lockPath, path } = await start([row('a', 'A')])
  await run()
  write([row('a', 'A'), row('b', 'B')])
  const { batch } = JSON.parse(readFileSync(lockPath, 'utf8'))
  const parts = [ownerOfParts(batch, lockPath), '01234567'].map((owner) => `.b.png.${owner}89ab.part`)
  for (const part of parts) await writeFile(path(part), '')
  expect((await run()).code).toBe(0)
  expect(readdirSync(path('.')).filter((name) => name.endsWith('.part'))).toEqual([parts[1]])
})

it('the plan after a killed batch fetches the runs of a chain whose files have their names, and costs nothing', async () => {
  const { run, created, editLock, editJournal, lock } = await start([row('a', 'A'), row('b', 'B', 'a')])
  await run()
  const before = lock()
  // Killed before the lock file had the two rows.
  editLock((runs) => {
    delete runs.a
    delete runs.b
  })
  editJournal('UPDATE runs SET recorded = 0')
  created()
  const plan = await run('--dry-run')
  expect(plan.stdout).toBe('download\ta\ta.png\tunfinished\ndownload\tb\tb.png\tunfinished\n')
  expect(plan.stderr).toBe('2 runs: 2 to download\n')
  expect([(await run('--max-runs 0')).code, created()]).toEqual([0, []])
  expect([lock().a.run, lock().b.run]).toEqual([before.a.run, before.b.run])
})

it('a create that is accepted without an id names its local key and how to send it again', async () => {
  const { run, service, flights } = await start([row('a', 'A')])
  const nameless: Fetch = (request) =>
    request.method === 'POST'
      ? scripted({ status: 201, body: { ok: true } }).fetch(request)
      : service.counting(request)
  const { code, stderr } = await run([], { fetch: nameless })
  expect(code).toBe(13)
  expect(stderr).toContain(`a (line 1, ${flights().a?.key}): `)
  expect(stderr).toContain('send it again with --resubmit-unconfirmed')
  expect(stderr).toContain('{"ok":true}')
})
