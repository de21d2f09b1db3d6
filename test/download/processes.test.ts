/** What only processes of their own can show: kill -9 beside one that lives. */
import { spawn } from 'node:child_process'
import { once as onceOf } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { built } from '../support/built.js'
import { until } from '../support/until.js'
import { host, WHOLE } from './breaking-host.js'
import { contents, download, newFolder, sha256 } from './download-setup.js'

/** Of one response of a host that then sends nothing. */
const SENT_BYTES = 120_000

describe('processes', () => {
  let program: string
  beforeAll(async () => {
    program = await built(new URL('./child.ts', import.meta.url))
  })

  it('leave only a hidden file when they are killed, and a later download begins again', async () => {
    const folder = newFolder()
    const stuck = await host({ stopAfter: SENT_BYTES })
    const killed = spawn(process.execPath, [program, stuck.url, folder], { stdio: 'ignore' })
    await until('its first bytes', () =>
      readdirSync(folder).some((name) => statSync(join(folder, name)).size > 0),
    )
    killed.kill('SIGKILL')
    await onceOf(killed, 'exit')
    expect(contents(folder)).toEqual([expect.stringMatching(/^\.big\.png\.[0-9a-f]{12}\.part$/)])
    const again = await host({})
    const result = await download({ url: again.url, folder, runId: 'big' })
    expect(result).toMatchObject({ ok: true, file: { sha256: sha256(WHOLE) } })
    expect(again.ranges()).toEqual([undefined])
  })
})
