/** Downloads of several processes, of which one may be killed. */
import { spawn } from 'node:child_process'
import { once as onceOf } from 'node:events'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { built } from '../support/built.js'
import { until } from '../support/until.js'
import { etagOf, host, into, sha256, WHOLE } from './breaking-host.js'
import { contents, createWork, newFolder, output, serve } from './download-setup.js'

/** Of one response of the host that stands still. */
const SENT_BYTES = 120_000

describe('processes', () => {
  let program: string
  beforeAll(async () => {
    program = await built(new URL('./child.ts', import.meta.url))
  })

  it('that is killed leaves a part from which another goes on, while a neighbour that lives keeps its own', async () => {
    const folder = newFolder()
    const slow = await host({})
    const stuck = await host({ stopAfter: SENT_BYTES })
    const start = () => spawn(process.execPath, [program, stuck.url, folder], { stdio: 'ignore' })
    const hasWritten = ({ pid }: { readonly pid?: number | undefined }, bytes: number) =>
      until(`${bytes} bytes of process ${pid}`, () => {
        const own = readdirSync(folder).find((name) => name.includes(`.${pid}-`))
        if (own === undefined) return false
        return statSync(join(folder, own, 'bytes'), { throwIfNoEntry: false })?.size === bytes
      })
    const killed = start()
    await hasWritten(killed, SENT_BYTES)
    killed.kill('SIGKILL')
    await onceOf(killed, 'exit')
    const living = start()
    await hasWritten(living, 2 * SENT_BYTES)
    try {
      const [result] = await createWork().download([output(slow.url, { runId: 'big' })], into(folder))
      expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
      // The killed one's part went to the neighbour, who lives: so this one began anew.
      expect(slow.ranges()).toEqual([undefined])
    } finally {
      living.kill('SIGKILL')
      await onceOf(living, 'exit')
    }
    const again = await host({})
    const [result] = await createWork().download([output(again.url, { runId: 'big' })], {
      ...into(folder),
      overwrite: true,
    })
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
    expect(again.ranges()).toEqual([`bytes=${2 * SENT_BYTES}-`])
    expect(contents(folder)).toEqual(['big.png'])
  })

  /** What the process says in the end. */
  async function ended(words: readonly string[], command = process.execPath): Promise<object> {
    const child = spawn(command, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    let said = ''
    child.stdout.on('data', (text) => {
      said += text
    })
    await onceOf(child, 'close')
    return JSON.parse(said)
  }

  /** Answers when so many have asked. */
  async function patientHost(askers: number): Promise<string> {
    const waiting: (() => void)[] = []
    return serve((_, response) => {
      waiting.push(() => response.writeHead(200, { etag: etagOf(WHOLE) }).end(WHOLE))
      if (waiting.length === askers) for (const answer of waiting.splice(0)) answer()
    })
  }

  it.each([
    ['without --overwrite one has it, and the other says so', [], [false, true]],
    ['with --overwrite the last has it', ['--overwrite'], [true, true]],
  ])('two fetch the same at once: %s', async (_, words, expected) => {
    const folder = newFolder()
    const url = await patientHost(2)
    const both = await Promise.all([1, 2].map(() => ended([program, url, folder, ...words])))
    expect(both.map((each) => (each as { ok: boolean }).ok).sort()).toEqual(expected)
    if (expected.includes(false))
      expect(both).toContainEqual(expect.objectContaining({ message: `${folder}/big.png already exists.` }))
    expect(sha256(readFileSync(join(folder, 'big.png')))).toBe(sha256(WHOLE))
    expect(contents(folder)).toEqual(['big.png'])
  })

  it.skipIf(process.platform === 'win32')(
    'a file that grows beyond what is allowed leaves nothing',
    async () => {
      const folder = newFolder()
      const url = await patientHost(1)
      // Of 512 or 1,024 bytes each, as the shell counts: less than the file in any case.
      const limited = `ulimit -f 100; exec "$@"`
      expect(await ended(['-c', limited, 'sh', process.execPath, program, url, folder], 'sh')).toMatchObject({
        ok: false,
        message: expect.stringContaining('the file is too large'),
      })
      expect(contents(folder)).toEqual([])
    },
  )
})
