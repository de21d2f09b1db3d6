/** `worker-process <data> hold` renews the lease of the worker `held` and stays; `list` prints all workers. */
import { join } from 'node:path'
import { openSqliteStore } from '../../../src/service/store/sqlite/index.js'

const [, , data = '', deed = ''] = process.argv
const store = openSqliteStore(join(data, 'service.db'))
if (deed === 'hold') {
  await store.renewLease('held')
  process.stdout.write('held\n')
  setInterval(() => {}, 1_000)
} else {
  process.stdout.write(JSON.stringify(await store.listWorkers()))
  await store.close()
}
