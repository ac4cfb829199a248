"""What the controller's tests share: random fabrics, a model that walks them, a fake switch."""
