"""`penstock dashboard`: a page that shows the cluster and its gangs, live."""
