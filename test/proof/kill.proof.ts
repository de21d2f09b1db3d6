/** `kill -9` at many instants of a local run: whatever was accepted is finished by a later wait, once. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { start } from '../support/started.js'

const INSTANTS = 25
const STEP_MS = 60

it(`loses nothing in ${INSTANTS} kills`, async () => {
  let accepted = 0
  const lost: string[] = []
  const broken: string[] = []
  for (let instant = 1; instant <= INSTANTS; instant++) {
    const { child, home, ended } = start(['run', 'image', '--local', '--debug', 'a fox', '-o', 'fox.png'])
    await after(instant * STEP_MS)
    child.kill('SIGKILL')
    const { stderr } = await ended
    if (readdirSync(home).includes('fox.png') && statSync(join(home, 'fox.png')).size < 1_000)
      broken.push(`${instant}`)
    const id = /run_[a-z0-9]{20}/.exec(stderr)?.[0]
    if (id === undefined) continue
    accepted++
    const again = await start(['wait', '--local', id, '-o', 'again.png'], { home }).ended
    if (again.code !== 0 || again.stdout !== 'again.png\n') lost.push(`${instant}: ${again.stderr}`)
  }
  process.stdout.write(
    `${INSTANTS} kills, ${accepted} runs known by then, ${lost.length} lost, ${broken.length} broken files\n`,
  )
  expect({ lost, broken }).toEqual({ lost: [], broken: [] })
  expect(accepted).toBeGreaterThan(0)
})
