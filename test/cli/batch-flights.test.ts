/** What a batch has in flight, where names, hashes and ids do not lead to one run each: nothing of it is paid twice. */
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Engine } from '../../src/service/engines/engine.js'
import { createFamily, type Row } from '../support/family.js'
import { createFamilyEngine, outputOf, scripted } from '../support/index.js'

const row = (name: string, prompt: string, ...sources: readonly string[]): Row => ({
  ...{ name, prompt },
  ...(sources.length > 0 && { image_urls: sources.map((each) => `row:${each}`) }),
})

it('a renamed row that waits for another one keeps `working` in the lock file while its run is in flight', async () => {
  const engine = createFamilyEngine()
  const render: Engine['render'] = async (job) =>
    job.input.prompt === 'B' ? new Promise(() => {}) : engine.render(job)
  const rows = [row('a', 'A'), row('x', 'B', 'a')]
  const { run, write, created, lockPath, folder } = await createFamily(rows, { engine: { render } })
  expect((await run('--timeout 30s')).code).toBe(11)
  // It gets the same bytes again.
  write([row('a', 'A!'), row('y', 'B', 'a')])
  created()
  expect([(await run('--timeout 30s')).code, created()]).toEqual([11, ['A!']])
  expect(JSON.parse(readFileSync(lockPath, 'utf8'))).toHaveProperty('working')
  const elsewhere = { env: { RUSHES_STATE_DIR: join(folder, 'other') } }
  expect([(await run([], elsewhere)).code, created()]).toEqual([13, []])
})

it('a row that waits for another one finds the file that a killed batch had given its name', async () => {
  const { run, write, created, editLock, editJournal, path, lock } = await createFamily([
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
  write([row('a', 'A!'), row('b', 'B', 'a')])
  created()
  outputOf(await run())
  expect(created()).toEqual(['A!'])
  expect(lock().b.run).toBe(id)
  expect(readdirSync(path('.')).filter((name) => name.endsWith('.png'))).toEqual(['a.png', 'b.png'])
})

it('an edit of a row whose create is unconfirmed pays for the edit, and pays nothing when it is undone', async () => {
  const { run, write, created } = await createFamily([row('a', 'A')])
  expect((await run([], { faults: ['create:lose'] })).code).toBe(13)
  write([row('a', 'B')])
  outputOf(await run())
  expect(created()).toEqual(['A', 'B'])
  write([row('a', 'A')])
  expect([(await run()).code, created()]).toEqual([13, []])
})

it('a batch removes the part of a download that it left when it was killed', async () => {
  const { run, write, path } = await createFamily([row('a', 'A')])
  await run()
  write([row('a', 'A'), row('b', 'B')])
  for (const name of ['b', 'c']) await writeFile(path(`.${name}.png.0123456789ab.part`), '')
  outputOf(await run())
  // Another command may be writing to a path that is no output.
  expect(readdirSync(path('.')).filter((name) => name.endsWith('.part'))).toEqual([
    '.c.png.0123456789ab.part',
  ])
})

it('a batch after a killed one downloads the runs of a chain whose files have their names, and creates nothing', async () => {
  const { run, created, editLock, editJournal, lock } = await createFamily([
    row('a', 'A'),
    row('b', 'B', 'a'),
  ])
  await run()
  const before = lock()
  // Killed before the lock file had the two rows.
  editLock((runs) => {
    delete runs.a
    delete runs.b
  })
  editJournal('UPDATE runs SET recorded = 0')
  created()
  outputOf(await run())
  expect(created()).toEqual([])
  expect([lock().a.run, lock().b.run]).toEqual([before.a.run, before.b.run])
})

it('a create that is accepted without an id names its local key and how to send it again', async () => {
  const { run, flights } = await createFamily([row('a', 'A')])
  const { code, stderr } = await run([], scripted({ status: 201, body: { ok: true } }))
  expect(code).toBe(13)
  expect(stderr).toContain(`a (line 1, ${flights().a?.key}): `)
  expect(stderr).toContain('send it again with --resubmit-unconfirmed')
  expect(stderr).toContain('{"ok":true}')
})
