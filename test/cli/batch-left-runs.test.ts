/** `rushes batch` and runs that have not ended: those that the service does not have, and those that no row waits for. */
import { existsSync, rmSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createFamily, objects, type Row, RUN, SHEET } from '../support/family.js'

/** A batch whose time limit has passed: its run is in the lock file, and goes on. */
async function createPending(rows: readonly Row[] = [SHEET]) {
  const family = await createFamily(rows, { rendering: false })
  expect((await family.run(['--timeout', '30s'])).code).toBe(11)
  expect(family.created()).toEqual([SHEET.prompt])
  const run: string = family.lock().sheet.pending.run
  return { ...family, pending: run, render: () => family.service.service.startRendering() }
}

/** The same, with a run that the service does not have. */
async function createLost() {
  const family = await createPending()
  family.editLock(({ sheet }) => Object.assign(sheet?.pending ?? {}, { run: 'run_gone' }))
  return family
}

const CHANGED = { ...SHEET, prompt: 'another sheet' }
const leftIn = (stdout: string) => objects(stdout).at(-1).summary.not_waited_for

describe('a run that the service does not have', () => {
  it('ends its row with an error that names it and says how to continue; nothing is created', async () => {
    const { run, created, lock } = await createLost()
    for (let times = 0; times < 2; times++) {
      const { code, stderr } = await run()
      expect(code).toBe(6)
      expect(stderr).toContain('run_gone')
      expect(stderr).toMatch(/To create it again and pay again: `rushes batch \S+ --only <row> --force`/)
    }
    expect([created(), lock().sheet.pending.run]).toEqual([[], 'run_gone'])
    // Without --only, a batch that was killed must not pay again for what it has created.
    expect((await run(['--force'])).code).toBe(6)
    expect(created()).toEqual([])
  })

  it('is created again with --only and --force, and named', async () => {
    const { run, created, render, lock } = await createLost()
    const words = ['--only', 'sheet', '--force']
    const plan = await run([...words, '--dry-run'])
    expect(plan.stdout).toBe('create\tsheet\tsheet.{ext}\tforced\n')
    expect(plan.stderr).toMatch(/warning: sheet: run_gone has not been downloaded, and --force creates/)
    render()
    const { code, stderr } = await run(words)
    expect([code, created()]).toEqual([0, [SHEET.prompt]])
    expect(stderr).toContain('To get its result: rushes wait -d run_gone')
    expect(lock().sheet.pending).toBeUndefined()
  })

  it('may be at another address, which is named', async () => {
    const { run, editLock } = await createLost()
    editLock(({ sheet }) => Object.assign(sheet?.pending ?? {}, { service: 'https://other.example' }))
    const { code, stderr } = await run()
    expect(code).toBe(6)
    expect(stderr).toContain('It was created at https://other.example. To continue there: --base-url')
  })

  it('is told of once where several rows have the same error', async () => {
    const family = await createFamily([SHEET, { ...SHEET, name: 'two', prompt: 'two' }], { rendering: false })
    await family.run(['--timeout', '30s'])
    family.editLock((runs) => {
      for (const [name, row] of Object.entries(runs)) Object.assign(row.pending ?? {}, { run: `run_${name}` })
    })
    const { stderr } = await family.run()
    expect(stderr.match(/To create it again/g)).toHaveLength(1)
    expect(stderr).toMatch(/1 more row with the same error: (two \(run_two\)|sheet \(run_sheet\))/)
  })
})

describe('a run whose row was changed before it ended', () => {
  it('is named in plan, text and JSON, and not waited for', async () => {
    const { run, created, write, render, pending } = await createPending()
    write([CHANGED])
    const said = `warning: sheet: ${pending} has not been downloaded, and the row has changed since. This batch does not wait for it. To get its result: rushes wait -d ${pending}`
    const left = [{ name: 'sheet', run: pending, key: null, why: 'changed' }]
    for (const mode of ['--dry-run', '--check']) {
      expect((await run([mode])).stderr).toContain(said)
      const json = await run([mode, '--json'])
      expect(leftIn(json.stdout)).toEqual(left)
      expect(json.stderr).toContain('"warning"')
    }
    render()
    const { code, stdout, stderr } = await run(['--json'])
    expect([code, created(), leftIn(stdout)]).toEqual([0, [CHANGED.prompt], left])
    expect(stderr).toContain(pending)
    expect((await run()).stderr).not.toContain('warning')
  })

  it('is named under --quiet too', async () => {
    const { run, write, pending } = await createPending()
    write([CHANGED])
    expect((await run(['--dry-run', '-q'])).stderr).toContain(pending)
  })

  it('continues when the row is changed back, whatever happened to its file meanwhile', async () => {
    const family = await createFamily([SHEET])
    const { run, write, created, lock, path, editLock } = family
    await run()
    const before = lock().sheet
    write([CHANGED])
    await run()
    const { hash, model, kind, run: id, service } = lock().sheet
    editLock((runs) => {
      const pending = { state: 'accepted', hash, model, kind, run: id, service, sent_at: before.made_at }
      runs.sheet = { ...before, pending }
    })
    rmSync(path('sheet.png'))
    created()
    write([SHEET])
    const { code, stderr } = await run()
    expect([code, stderr]).toEqual([0, expect.stringContaining(`${id} has not been downloaded`)])
    expect(existsSync(path('sheet.png'))).toBe(true)
    expect(lock().sheet.pending.run).toBe(id)
    expect((await run()).stderr).toMatch(/1 run: 1 up to date/)
    write([CHANGED])
    expect((await run()).stderr).toMatch(/1 run: 1 downloaded/)
    expect([created(), lock().sheet.run]).toEqual([[], id])
  })

  it('is named when its row leaves the manifest, and kept in the lock file', async () => {
    const { run, write, pending, lock, render, created } = await createPending()
    write([{ ...RUN, image_urls: [] }])
    render()
    const { code, stderr } = await run()
    expect(code).toBe(0)
    expect(stderr).toContain(`warning: sheet: ${pending} has not been downloaded, and the row is not in the`)
    expect(stderr).not.toContain('kept in the lock file while the file exists')
    created()
    write([SHEET])
    expect((await run()).code).toBe(0)
    expect([created(), lock().sheet.run]).toEqual([[], pending])
  })

  it('is named where a row that it uses is created again', async () => {
    const { run, write, created, lock, editLock, path } = await createFamily([SHEET, RUN])
    await run()
    editLock((runs) => {
      const { hash, model, kind, run: id } = runs.run as Record<string, string>
      runs.run = {
        pending: { state: 'accepted', hash, model, kind, run: id, sent_at: '2026-01-01T00:00:00Z' },
      }
    })
    rmSync(path('run.png'))
    const id = lock().run.pending.run
    created()
    write([{ ...SHEET, prompt: `${SHEET.prompt}!` }, RUN])
    expect((await run(['--dry-run'])).stderr).toContain(
      `${id} has not been downloaded, and rows that it uses are created again. This batch does not wait for it unless they get the same bytes again.`,
    )
    // They do.
    expect((await run()).code).toBe(0)
    expect([created(), lock().run.run]).toEqual([[`${SHEET.prompt}!`], id])
  })

  it('is named with its key where its create has an unknown outcome', async () => {
    const { run, write, editLock } = await createPending()
    editLock(({ sheet }) => {
      Object.assign(sheet?.pending ?? {}, { state: 'unconfirmed', key: '~3f2a', run: undefined })
    })
    write([CHANGED])
    const { stderr, stdout } = await run(['--dry-run', '--json'])
    expect(leftIn(stdout)).toEqual([{ name: 'sheet', run: null, key: '~3f2a', why: 'changed' }])
    expect(stderr).toContain('the outcome of an earlier create (~3f2a) is unknown')
  })
})
