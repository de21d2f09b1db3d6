import { ApiError, messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { Notice } from '../components/notice.js'
import type { Polling } from './polling.js'

/** Says that what is shown may be old. That nothing answers is said above every page. */
export function PollingNotice({ error, retry }: Polling) {
  const isShown = error !== undefined && !(error instanceof ApiError && error.code === 'network')
  return (
    <div role="status">
      {isShown && (
        <Notice
          tone="warn"
          title="Live updates are interrupted. Trying again."
          action={
            <Button size="small" icon="rotate" onClick={retry}>
              Try now
            </Button>
          }
        >
          {messageOf(error)}
        </Notice>
      )}
    </div>
  )
}
