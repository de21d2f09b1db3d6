import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openDatabase } from '../../../src/host/database.js'
import { MIGRATIONS } from '../../../src/service/store/migrations.js'
import { openSqliteStore } from '../../../src/service/store/sqlite.js'
import { temporaryFolder } from '../../support/service.js'
import { storeContract } from './contract.js'

const newPath = () => join(temporaryFolder(), 'service.db')

storeContract(() => openSqliteStore(newPath()))

test('a database of a later version is refused and left as it is', async () => {
  const path = newPath()
  const store = openSqliteStore(path)
  await store.close()
  const later = openDatabase({ path, migrations: [...MIGRATIONS, 'CREATE TABLE later (x)'] })
  later.close()
  expect(() => openSqliteStore(path)).toThrow(/later version of rushes/)
  expect(() => openSqliteStore(path)).toThrow(expect.objectContaining({ code: 'usage', exitCode: 2 }))
})
