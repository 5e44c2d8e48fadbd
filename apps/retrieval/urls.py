from django.urls import path

from apps.retrieval import api

urlpatterns = [
    path("receipts", api.ReceiptsView.as_view(), name="receipts"),
    path("receipts/import", api.ReceiptImportView.as_view(), name="receipt-import"),
    path("receipts/<str:receipt_id>", api.ReceiptView.as_view(), name="receipt"),
    path("receipts/<str:receipt_id>/replay", api.ReplayView.as_view(), name="receipt-replay"),
]
