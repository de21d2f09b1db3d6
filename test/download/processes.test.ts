/** What only processes of their own can show: kill -9 beside one that lives, memory, and a limit of the shell. */
import { execFile, spawn } from 'node:child_process'
import { once as onceOf } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { built } from '../support/built.js'
import { until } from '../support/until.js'
import { downloadInChild } from './big.js'
import { host, WHOLE } from './breaking-host.js'
import { contents, download, newFolder, sha256 } from './download-setup.js'

const MIB = 1_048_576
/** Of one response of a host that then sends nothing. */
const SENT_BYTES = 120_000

describe('processes', () => {
  let program: string
  beforeAll(async () => {
    program = await built(new URL('./child.ts', import.meta.url))
  })

  it('that are killed leave a part from which another resumes, while one that lives keeps its own', async () => {
    const [folder, stateFolder] = [newFolder(), newFolder()]
    const slow = await host({})
    const stuck = await host({ stopAfter: SENT_BYTES })
    const start = () =>
      spawn(process.execPath, [program, stuck.url, folder, stateFolder], { stdio: 'ignore' })
    const bytesOf = (part: string) => statSync(join(folder, part, 'bytes'), { throwIfNoEntry: false })?.size
    const hasWritten = (bytes: number) =>
      until(`${bytes} bytes`, () => readdirSync(folder).some((part) => bytesOf(part) === bytes))
    const killed = start()
    await hasWritten(SENT_BYTES)
    killed.kill('SIGKILL')
    await onceOf(killed, 'exit')
    const living = start()
    await hasWritten(2 * SENT_BYTES)
    try {
      const result = await download({ url: slow.url, folder, stateFolder, runId: 'big' })
      expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
      // The part of the killed process belongs to the living one, so this one started from zero.
      expect(slow.ranges()).toEqual([undefined])
    } finally {
      living.kill('SIGKILL')
      await onceOf(living, 'exit')
    }
    const again = await host({})
    const result = await download({ url: again.url, folder, stateFolder, runId: 'big', overwrite: true })
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
    expect(again.ranges()).toEqual([`bytes=${2 * SENT_BYTES}-`])
    expect(contents(folder)).toEqual(['big.png'])
  })

  it('use the same memory for 200 MiB as for less', async () => {
    const folder = newFolder()
    const { ok, grownMiB } = await downloadInChild(200 * MIB, folder, program)
    expect(ok).toBe(true)
    expect(statSync(join(folder, 'big.mp4')).size).toBe(200 * MIB)
    // Measured: 50 to 60 MiB, as for 2 GiB: chunks that wait for the garbage collector.
    expect(grownMiB).toBeLessThan(100)
  })

  it.skipIf(process.platform === 'win32')('that exceed the allowed file size leave nothing', async () => {
    const folder = newFolder()
    const { url } = await host({})
    // Of 512 or 1,024 bytes each, as the shell counts: less than the file in any case.
    const limited = ['-c', 'ulimit -f 100; exec "$@"', 'sh', process.execPath, program, url, folder]
    const { stdout } = await promisify(execFile)('sh', limited)
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      message: expect.stringContaining('the file is too large'),
    })
    expect(contents(folder)).toEqual([])
  })
})
