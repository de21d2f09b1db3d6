/** `kill -9` at many instants of a local run: whatever the service had accepted is finished by a later wait. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as after } from 'node:timers/promises'
import Database from 'libsql'
import { expect, it } from 'vitest'
import { createPlace, filesBelow, type Place, rushes, start } from '../support/binary.js'

const INSTANTS = 25
const STEP_MS = 50
const PNG_END = Buffer.from('IEND')

/** What the service itself has accepted, whether or not the program lived to hear of it. */
function acceptedIn({ home }: Place): readonly string[] {
  const path = join(home, '.local', 'state', 'rushes', 'local', 'service.db')
  if (!existsSync(path)) return []
  const database = new Database(path)
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE name = 'runs'").all()
    if (tables.length === 0) return []
    return (database.prepare('SELECT id FROM runs').all() as { id: string }[]).map(({ id }) => id)
  } finally {
    database.close()
  }
}

it(`loses nothing in ${INSTANTS} kills`, async () => {
  let accepted = 0
  const lost: string[] = []
  const broken: string[] = []
  for (let instant = 1; instant <= INSTANTS; instant++) {
    const place = createPlace()
    const killed = start(place, ['run', 'image', '--local', 'a fox', '-o', 'fox.png'])
    await after(instant * STEP_MS)
    killed.kill('SIGKILL')
    await killed.ended
    if (filesBelow(place.folder).includes('fox.png')) {
      const bytes = readFileSync(join(place.folder, 'fox.png'))
      if (bytes.indexOf(PNG_END) !== bytes.length - 8) broken.push(`after ${instant * STEP_MS} ms`)
    }
    for (const id of acceptedIn(place)) {
      accepted++
      const { code, stdout, stderr } = await rushes(place, ['wait', '--local', id, '-o', 'again.png'])
      if (code !== 0 || stdout !== 'again.png\n') lost.push(`after ${instant * STEP_MS} ms: ${stderr}`)
    }
  }
  process.stdout.write(
    `${INSTANTS} kills, ${accepted} runs accepted by then, ${lost.length} lost, ${broken.length} broken files\n`,
  )
  expect({ lost, broken }).toEqual({ lost: [], broken: [] })
  expect(accepted).toBeGreaterThan(0)
})
