import { SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'

export function NewRunPage(_: { readonly query: Readonly<Record<string, string>> }) {
  return (
    <Page title="New run">
      <SkeletonLines />
    </Page>
  )
}
